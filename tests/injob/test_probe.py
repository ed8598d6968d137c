"""What a node says of itself, and how it fails to."""

import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import jsonschema
import pytest

from placer.formats.schemas import schema_text
from placer.injob import gpus
from placer.injob.probe import probe
from tests.injob.stand_ins import UUID, ZEROS, line, program, smi_xml

SCHEMA = json.loads(schema_text("probe"))
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def bare_node(tmp_path, monkeypatch):
    """A node on which only the test's own programs tell of GPUs."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    for name in ("PLACER_HOST", "SLURMD_NODENAME", "NODE_NAME", "PLACER_LABELS"):
        monkeypatch.delenv(name, raising=False)


def probed(cloud=None):
    """This node's probe, which the schema allows."""
    found = probe(cloud)
    jsonschema.validate(found, SCHEMA)
    assert {*found} == {*SCHEMA["properties"]}
    return found


def smi(folder, text):
    (folder / "smi.xml").write_text(text)
    program(folder, "nvidia-smi", f'[ "$*" = "-q -x" ] && cat {folder}/smi.xml')


def test_gpus_and_their_domain(tmp_path, monkeypatch):
    """The GPUs of nvidia-smi's XML, their NVLink domain, and Slurm's address."""
    smi(tmp_path, smi_xml("7", "7", "7", "7"))
    monkeypatch.setenv("SLURMD_NODENAME", "r1n07")
    monkeypatch.setenv("SLURM_TOPOLOGY_ADDR", "spine1.leaf3.r1n07")
    monkeypatch.setenv("SLURM_TOPOLOGY_ADDR_PATTERN", "switch.switch.node")
    found = probed()
    assert found["host"] == "r1n07"
    assert (found["gpus"], found["gpu"]) == (4, "NVIDIA GB200")
    assert found["memory"] == 189471
    assert found["nvlink_domain"] == f"{UUID.format(5)}.7"
    assert found["topology_addr"] == "spine1.leaf3.r1n07"
    assert found["topology_pattern"] == "switch.switch.node"
    assert found["problems"] == []


@pytest.mark.parametrize(
    "text",
    [
        smi_xml("1", "1", uuid=ZEROS),
        smi_xml("1", "1", state="In Progress"),
        smi_xml("N/A", "N/A", uuid="N/A", state="N/A"),
    ],
)
def test_no_domain_of_several_nodes(tmp_path, text):
    """A UUID of zeros, a fabric that is not there and one not ready are no domain."""
    smi(tmp_path, text)
    found = probed()
    assert (found["gpus"], found["nvlink_domain"]) == (2, None)
    assert found["problems"] == []


@pytest.mark.parametrize(
    ("text", "gpus", "problem"),
    [
        (smi_xml("1", "2"), 2, "GPUs differ in their NVLink domain"),
        (smi_xml(*"1111111", attached=8), 7, "8 GPUs attached, 7 listed"),
        (smi_xml(), 0, "no GPU: nvidia-smi lists none"),
        (
            "Unable to determine the device handle",
            0,
            "nvidia-smi: its output is no XML",
        ),
        ('<!DOCTYPE x [<!ENTITY a "b">]><nvidia_smi_log/>', 0, "declares entities"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, gpus, problem):
    """GPUs that differ or are missing, and rubbish, are problems of the node."""
    smi(tmp_path, text)
    found = probed()
    assert found["gpus"] == gpus
    assert any(problem in said for said in found["problems"]), found


def test_a_node_without_gpus():
    """Where nothing tells of GPUs, that is the problem."""
    found = probed()
    assert (found["gpus"], found["gpu"], found["memory"]) == (0, "", None)
    assert found["problems"] == ["no GPU: there is no NVML, nvidia-smi or amd-smi"]


def test_a_program_that_hangs(tmp_path, monkeypatch):
    """A program that hangs, with a child that holds its output, is left in time."""
    monkeypatch.setattr(gpus, "LIMIT_S", 0.3)
    program(tmp_path, "nvidia-smi", "trap '' TERM\nsleep 30 & sleep 30")
    started = time.monotonic()
    found = probed()
    assert time.monotonic() - started < 2
    assert found["problems"] == ["nvidia-smi: no answer in 0.3 s"]


def test_a_program_that_fails(tmp_path):
    """The status and the first line of a program that fails are told."""
    program(tmp_path, "nvidia-smi", "echo NVIDIA-SMI has failed; exit 9")
    said = "nvidia-smi: ended with status 9: NVIDIA-SMI has failed"
    assert probed()["problems"] == [said]


def test_amd(tmp_path):
    """amd-smi's list, with and without the envelope of ROCm 7."""
    rows = [
        {
            "gpu": k,
            "asic": {"market_name": "AMD Instinct MI300X"},
            "bus": {"bdf": f"0000:{k:02x}:00.0"},
            "vram": {"size": {"value": 196592, "unit": "MB"}},
        }
        for k in range(8)
    ]
    for data in (rows, {"gpu_data": rows}):
        (tmp_path / "amd.json").write_text(json.dumps(data))
        program(tmp_path, "amd-smi", f"cat {tmp_path}/amd.json")
        found = probed()
        assert (found["gpus"], found["gpu"]) == (8, "AMD Instinct MI300X")
        assert (found["memory"], found["nvlink_domain"]) == (196592, None)


def test_labels_of_the_downward_api(tmp_path, monkeypatch):
    """Labels are those of the mounted file; NODE_NAME says what the node is called."""
    path = tmp_path / "labels"
    path.write_text('topology.kubernetes.io/zone="z1"\nrack="r\\"1"\nnoise\n')
    monkeypatch.setenv("PLACER_LABELS", str(path))
    monkeypatch.setenv("NODE_NAME", "gpu-7")
    found = probed()
    assert found["labels"] == {"topology.kubernetes.io/zone": "z1", "rack": 'r"1'}
    assert found["host"] == "gpu-7"
    monkeypatch.setenv("PLACER_LABELS", str(tmp_path / "none"))
    assert "No such file" in probed()["problems"][-1]


class _Metadata(BaseHTTPRequestHandler):
    """The metadata services of all clouds; one path never answers."""

    def do_GET(self):
        answers = {
            "/computeMetadata/v1/instance/attributes/physical_host": (
                ("Metadata-Flavor", "Google"),
                "/b1/s2/h3",
            ),
            "/opc/v2/host/rdmaTopologyData": (
                ("Authorization", "Bearer Oracle"),
                '{"customerLocalBlock": "l", "customerNetworkBlock": "n"}',
            ),
            "/latest/meta-data/instance-id": (
                ("X-aws-ec2-metadata-token", "token"),
                "i-1",
            ),
        }
        if self.path.startswith("/metadata/"):
            time.sleep(1.6)
            return
        (header, wanted), text = answers.get(self.path, (("", ""), ""))
        self.send_response(200 if header and self.headers[header] == wanted else 404)
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"token")

    def log_message(self, *_):
        pass


@pytest.fixture
def metadata(monkeypatch):
    server = HTTPServer(("127.0.0.1", 0), _Metadata)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("PLACER_METADATA", f"http://127.0.0.1:{server.server_port}")
    yield
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("cloud", "facts"),
    [
        ("gce", {"block": "b1", "subblock": "s2", "host": "h3"}),
        ("oci", {"local_block": "l", "network_block": "n"}),
        ("aws", {"instance_id": "i-1"}),
    ],
)
@pytest.mark.usefixtures("metadata")
def test_clouds(cloud, facts):
    """Each cloud's metadata service is asked with the header that it wants."""
    assert probed(cloud)["cloud"] == {"name": cloud, **facts}


@pytest.mark.usefixtures("metadata")
def test_metadata_that_does_not_answer():
    """A metadata service that hangs, or is none, costs half a second and a problem."""
    started = time.monotonic()
    found = probed("azure")
    assert time.monotonic() - started < 1.5
    assert found["cloud"] == {"name": "azure"}
    assert "cloud azure: " in found["problems"][-1]


def test_the_command_is_quick_and_light(tmp_path):
    """One line in a third of a second of CPU, without numpy, whatever is wrong."""
    smi(tmp_path, "rubbish")
    script = (
        "import resource, sys; from placer.cli.main import main\n"
        "main(['probe'], standalone_mode=False)\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_utime + used.ru_stime, file=sys.stderr)\n"
        "assert not {'numpy', 'yaml', 'networkx', 'ortools'} & {*sys.modules}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("\n") == 1
    assert {*json.loads(done.stdout)} == {*json.loads(line("n1"))}
    assert float(done.stderr) < 0.3

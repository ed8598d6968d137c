"""The report page begins with what the terminal prints first."""

from placer.api.place import place
from placer.api.report import report_html
from placer.report.verdict import sentences


def words(browser):
    """The headline of a page and what follows it."""
    return browser.run(
        "return ['h1', '.lede'].map((s) => document.querySelector(s).innerText)"
        ".join(' ')"
    ).replace("\N{NO-BREAK SPACE}", " ")


def spoken(plan):
    """The verdict of a plan in sentences."""
    said = sentences(plan, plan.verdict)
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in said)


def test_an_order_that_is_kept(browser, tmp_path):
    """The page says so as the terminal does, has it once, and folds its map."""
    plan = place("dgx-h100-4x8", "quickstart").plan
    path = tmp_path / "kept.html"
    path.write_text(report_html(plan))
    browser.read(path)
    assert words(browser) == spoken(plan)
    assert browser.run("return maps.length") == 1
    assert "before" not in browser.run("return document.body.innerText").lower()
    assert not browser.run("return maps.at(-1).checkVisibility()")
    browser.run('$("fold").open = true')
    painted = (
        "return maps.at(-1).checkVisibility() && layers[0].cells.children.length > 0"
    )
    browser.wait_for("setTimeout(arguments[0], 300)")
    assert browser.run(painted)
    assert browser.log() == []
    path.write_text(report_html(plan, "megatron-default"))
    browser.read(path)
    assert browser.run('return $("fold")') is None


def test_a_plan_to_move_to(browser, tmp_path):
    """The page begins as the terminal, and tells what the decision rests on."""
    machine = "rack:4 node:18 gpu:4"
    plan = place(machine, "llama3.1-405b-256", exclude="r1-n05,r2-n11").plan
    path = tmp_path / "move.html"
    path.write_text(report_html(plan))
    browser.read(path)
    assert words(browser) == spoken(plan)
    text = browser.run("return document.body.innerText")
    assert "1 of 32 tp groups comes back into one rack" in text
    assert "assumed: uplinks not oversubscribed; at 2:1 this plan saves" in text
    path.write_text(report_html(plan, "megatron-default"))
    browser.read(path)
    assert words(browser).startswith("Saves 6.6 s a step (")

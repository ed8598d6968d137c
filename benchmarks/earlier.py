"""Hop costs that mappers reached on the instances with more settings and seeds.

Best of 1 to 4 seeds and of all presets of a tool, the tool in its own program rather
than a Python package, and tools that have no package: values to see that the set-up
here does not hold a tool back. ``raw`` is without contraction.
"""

RAW = "raw"
CONTRACTED = "contracted"

# instance -> tool -> hop cost
EARLIER: dict[str, dict[str, dict[str, int]]] = {
    "Mt-KaHyPar": {
        "A": {RAW: 35_307_520, CONTRACTED: 35_307_520},
        "Araw": {RAW: 34_967_432},
        "B": {RAW: 35_755_904, CONTRACTED: 35_700_864},
        "C": {CONTRACTED: 72_079_360},
        "D": {CONTRACTED: 45_072_640},
        "E": {RAW: 22_462_464},
        "F": {CONTRACTED: 436_606_976},
        "G": {RAW: 458_450_184, CONTRACTED: 449_602_176},
        "H": {CONTRACTED: 42_952_768},
    },
    "METIS": {
        "A": {RAW: 35_307_520, CONTRACTED: 35_307_520},
        "Araw": {RAW: 39_583_076},
        "B": {RAW: 38_835_816, CONTRACTED: 35_756_928},
        "C": {RAW: 75_594_116, CONTRACTED: 72_279_776},
        "D": {RAW: 45_118_784, CONTRACTED: 45_323_552},
        "E": {RAW: 22_462_464},
        "F": {RAW: 460_479_840, CONTRACTED: 456_414_176},
        "G": {RAW: 618_898_468, CONTRACTED: 451_679_744},
    },
    "Scotch": {
        "A": {RAW: 35_909_632, CONTRACTED: 35_400_544},
        "Araw": {RAW: 35_273_632},
        "B": {RAW: 41_829_800, CONTRACTED: 35_726_368},
        "C": {RAW: 76_500_532, CONTRACTED: 72_067_104},
        "D": {RAW: 45_092_736, CONTRACTED: 45_072_384},
        "E": {RAW: 22_763_520},
        "F": {RAW: 436_870_912, CONTRACTED: 436_920_960},
        "G": {RAW: 608_785_108, CONTRACTED: 462_530_144},
        "H": {CONTRACTED: 42_939_712},
    },
    "KaHIP 3.25": {
        "A": {CONTRACTED: 35_464_192},
        "Araw": {RAW: 36_384_496},
        "B": {CONTRACTED: 36_406_880},
        "C": {RAW: 72_719_904},
        "D": {RAW: 45_072_384},
        "E": {RAW: 22_536_192},
        "F": {RAW: 437_420_096},
    },
    "SharedMap 1.1.1": {
        "A": {RAW: 35_307_520},
        "Araw": {RAW: 38_784_768},
        "B": {CONTRACTED: 36_374_112},
        "D": {RAW: 45_072_384},
        "E": {RAW: 22_554_624},
        "F": {CONTRACTED: 438_848_960},
    },
    "TreeMatch": {
        "A": {CONTRACTED: 35_307_520},
        "B": {CONTRACTED: 39_066_688},
        "C": {CONTRACTED: 72_038_400},
        "D": {CONTRACTED: 45_072_384},
        "E": {RAW: 104_946_496},
        "F": {CONTRACTED: 436_600_832},
        "H": {CONTRACTED: 44_082_720},
    },
}

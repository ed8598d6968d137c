"""Colours as people see them who lack one kind of cone.

Matrices: Machado, Oliveira and Fernandes 2009, "A Physiologically-based Model for
Simulation of Color Vision Deficiency", severity 1.0, on linear sRGB. Differences are
those of CIE 1976 (Lab), where 2.3 is just noticeable (Mahy et al. 1994).
"""

import numpy as np

VISION = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
# Linear sRGB to XYZ, D65 (IEC 61966-2-1).
_XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(colour):
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(colour, vision):
    seen = np.clip(VISION[vision] @ linear(colour), 0, 1)
    share = _XYZ @ seen / _WHITE
    root = np.where(
        share > 216 / 24389, np.cbrt(share), (24389 / 27 * share + 16) / 116
    )
    return np.array(
        [116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])]
    )


def difference(one, other, vision):
    return float(np.linalg.norm(lab(one, vision) - lab(other, vision)))


def contrast(one, other):
    """Contrast ratio of WCAG 2.2."""
    light = sorted(float(_XYZ[1] @ linear(colour)) for colour in (one, other))
    return (light[1] + 0.05) / (light[0] + 0.05)

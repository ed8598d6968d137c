"""The site: ``sphinx-build -W docs site``."""

from importlib.metadata import version as version_of

project = "placer"
author = copyright = "placer contributors"
version = release = version_of("placer")
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx_click"]
html_theme = "furo"
html_title = "placer"
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # a page opened from a disk cannot fetch others
html_extra_path = ["../schemas"]
exclude_patterns = ["conf.py"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
suppress_warnings = ["misc.highlighting_failure"]  # a shell session is no program

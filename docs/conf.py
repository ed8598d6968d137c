"""The site: ``sphinx-build -W docs site``."""

from importlib.metadata import version as version_of

project = "placer"
author = copyright = "placer contributors"
version = release = version_of("placer")
extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx_click"]
html_theme = "furo"
html_title = "placer"
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # a page opened from a disk cannot fetch others
html_extra_path = ["../schemas"]
exclude_patterns = ["conf.py"]
myst_heading_anchors = 4
nb_execution_mode = "force"  # notebooks are kept without what they print
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
myst_enable_extensions = ["colon_fence"]
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
suppress_warnings = ["misc.highlighting_failure"]  # a shell session is no program


def setup(app):
    """Sphinx says that captions of contents are headings, but not of which level."""
    app.connect("html-page-context", _say_levels, priority=900)


def _say_levels(*arguments):
    context = arguments[3]
    for part in ("body", "furo_navigation_tree"):
        text = context.get(part) or ""
        context[part] = text.replace('role="heading">', 'role="heading" aria-level=2>')

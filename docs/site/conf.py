"""Sphinx's configuration; `docs.site` calls Sphinx with it, on a folder of pages that it has put together."""

project = "Crossgap"
project_copyright = "the contributors of Crossgap, Apache-2.0"
extensions = ["myst_parser"]
root_doc = "index"
html_theme = "furo"
html_title = "Crossgap"
html_static_path = ["_static"]
html_js_files = ["filter.js"]
html_css_files = ["tables.css"]
html_extra_path = ["_extra"]
html_copy_source = False
html_show_sphinx = False
# headings have the anchors that GitHub gives them, so that links work in both places
myst_heading_anchors = 6
myst_enable_extensions = ["attrs_inline"]
# docstrings write code in single backticks
default_role = "code"
highlight_language = "text"
# the sketches and YAML with comments of our own are shown as they are, whether they can be coloured or not
suppress_warnings = ["misc.highlighting_failure", "myst.header"]

"""The web page: built from web/ by `./run web` into static/, so that nobody needs Node to use it; page.py serves it."""

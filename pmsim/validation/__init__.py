"""Holds predictions against published measurements: claims of papers and whole data sets."""

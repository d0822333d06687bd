"""The commands of ``pmsim``, one file each."""

"""Checks that a file is XML."""
import sys
import xml.etree.ElementTree as xml
xml.parse(sys.argv[1])

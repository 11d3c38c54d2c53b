"""Sessions as files for others: one format a file in `formats/`, and the way back for the one that keeps everything.

`export(session, "html")` gives the bytes of a recorded session, `save(session, "html", folder)` puts them into a file,
whole or not at all. What is written depends on the record and the options alone: not on the place, the language or the
hour.
"""

from homeai.export.exporting import Format as Format
from homeai.export.exporting import Options as Options
from homeai.export.exporting import Source as Source
from homeai.export.exporting import export as export
from homeai.export.saving import save as save

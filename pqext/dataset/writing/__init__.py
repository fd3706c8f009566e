"""Write the files of a folder together: part files, partitions, and the commit that makes all files visible."""

"""Sessions, settings, files, types and errors of Spark, as all of pqext.spark uses them."""

"""Index types. Each type defines the content, the computation and the evaluation of index entries."""

package pqext.tests;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.column.statistics.SizeStatistics;
import org.apache.parquet.column.statistics.Statistics;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.internal.column.columnindex.ColumnIndex;
import org.apache.parquet.internal.column.columnindex.OffsetIndex;
import org.apache.parquet.io.api.Binary;

/** What parquet-java sees in a file's footer and page index, as JSON: a list of chunks for each row group. */
public class Footer {
    public String describe(String path, boolean encrypted) throws Exception {
        Configuration conf = new Configuration();
        Path file = new Path(path);
        ParquetReadOptions.Builder options = HadoopReadOptions.builder(conf);
        if (encrypted) {
            options.withDecryption(new Keys().getFileDecryptionProperties(conf, file));
        }
        ParquetFileReader reader = ParquetFileReader.open(HadoopInputFile.fromPath(file, conf), options.build());
        try {
            List groups = new ArrayList();
            for (Iterator blocks = reader.getFooter().getBlocks().iterator(); blocks.hasNext(); ) {
                BlockMetaData block = (BlockMetaData) blocks.next();
                List chunks = new ArrayList();
                for (Iterator columns = block.getColumns().iterator(); columns.hasNext(); ) {
                    chunks.add(chunk(reader, block, (ColumnChunkMetaData) columns.next()));
                }
                groups.add(chunks);
            }
            return new ObjectMapper().writeValueAsString(groups);
        } finally {
            reader.close();
        }
    }

    private Map chunk(ParquetFileReader reader, BlockMetaData block, ColumnChunkMetaData column) throws Exception {
        Map found = new LinkedHashMap();
        found.put("path", column.getPath().toDotString());
        found.put("rows", Long.valueOf(block.getRowCount()));
        found.put("values", Long.valueOf(column.getValueCount()));
        found.put("codec", column.getCodec().name());
        found.put("encodings", column.getEncodings().toString());
        Statistics statistics = column.getStatistics();
        if (statistics != null) {
            found.put("nulls", statistics.isNumNullsSet() ? Long.valueOf(statistics.getNumNulls()) : null);
            found.put("minimum", statistics.hasNonNullValue() ? statistics.getMinBytes() : null);
            found.put("maximum", statistics.hasNonNullValue() ? statistics.getMaxBytes() : null);
        }
        SizeStatistics sizes = column.getSizeStatistics();
        if (sizes != null) {
            found.put("definition_levels", sizes.getDefinitionLevelHistogram());
            found.put("repetition_levels", sizes.getRepetitionLevelHistogram());
            found.put("byte_array_bytes", sizes.getUnencodedByteArrayDataBytes().orElse(null));
        }
        ColumnIndex bounds = reader.readColumnIndex(column);
        if (bounds != null) {
            found.put("null_pages", bounds.getNullPages());
            found.put("null_counts", bounds.getNullCounts());
            found.put("minima", bytes(bounds.getMinValues()));
            found.put("maxima", bytes(bounds.getMaxValues()));
            found.put("order", bounds.getBoundaryOrder().name());
            found.put("page_definition_levels", bounds.getDefinitionLevelHistogram());
            found.put("page_repetition_levels", bounds.getRepetitionLevelHistogram());
        }
        OffsetIndex places = reader.readOffsetIndex(column);
        if (places != null) {
            List pages = new ArrayList();
            for (int page = 0; page < places.getPageCount(); page++) {
                Map one = new LinkedHashMap();
                one.put("offset", Long.valueOf(places.getOffset(page)));
                one.put("size", Integer.valueOf(places.getCompressedPageSize(page)));
                one.put("first_row", Long.valueOf(places.getFirstRowIndex(page)));
                one.put("last_row", Long.valueOf(places.getLastRowIndex(page, block.getRowCount())));
                pages.add(one);
            }
            found.put("pages", pages);
        }
        return found;
    }

    private List bytes(List buffers) {
        List found = new ArrayList();
        for (Iterator each = buffers.iterator(); each.hasNext(); ) {
            found.add(Binary.fromConstantByteBuffer((ByteBuffer) each.next()).getBytes());
        }
        return found;
    }
}

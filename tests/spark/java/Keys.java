package pqext.tests;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.crypto.DecryptionKeyRetriever;
import org.apache.parquet.crypto.DecryptionPropertiesFactory;
import org.apache.parquet.crypto.FileDecryptionProperties;

/** Keys of the files that the tests write: by their key metadata, and the footer's where there is none. */
public class Keys implements DecryptionPropertiesFactory, DecryptionKeyRetriever {
    public FileDecryptionProperties getFileDecryptionProperties(Configuration conf, Path path) {
        byte[] footerKey = getKey("f".getBytes());
        return FileDecryptionProperties.builder().withFooterKey(footerKey).withKeyRetriever(this).build();
    }

    public byte[] getKey(byte[] keyMetaData) {
        String name = new String(keyMetaData);
        return (name.equals("f") ? "0123456789012345" : "123456789012345678901234").getBytes();
    }
}

package nightporter.rocketmq;

import java.io.IOException;
import java.nio.channels.SocketChannel;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.ha.DefaultHAService;
import org.apache.rocketmq.store.ha.HAConnection;

/** A broker without slaves needs no replication listener, and the stock one would listen on every interface. */
public final class NoReplication extends DefaultHAService {
    @Override
    public void init(DefaultMessageStore store) throws IOException {
        super.init(store);
        acceptSocketService = new Closed(store.getMessageStoreConfig());
    }

    private final class Closed extends AcceptSocketService {
        Closed(MessageStoreConfig config) {
            super(config);
        }

        @Override
        public void beginAccept() {}

        @Override
        public void run() {}

        @Override
        protected HAConnection createConnection(SocketChannel channel) {
            return null;
        }

        @Override
        public String getServiceName() {
            return "NoReplication";
        }
    }
}

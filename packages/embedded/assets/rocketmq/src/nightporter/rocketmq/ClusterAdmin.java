package nightporter.rocketmq;

import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.apache.rocketmq.remoting.protocol.admin.OffsetWrapper;
import org.apache.rocketmq.remoting.protocol.admin.TopicOffset;
import org.apache.rocketmq.remoting.protocol.body.ClusterInfo;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;
import org.apache.rocketmq.remoting.protocol.route.QueueData;
import org.apache.rocketmq.remoting.protocol.route.TopicRouteData;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** The same conversation and operations as the launcher's, on a cluster that somebody else runs. Argument: its name servers. */
public final class ClusterAdmin implements Operations {
    private static final long ROUTE_WAIT_MS = 10_000;
    private static final long CALL_LIMIT_MS = 5_000;

    private final DefaultMQAdminExt admin = new DefaultMQAdminExt(CALL_LIMIT_MS);

    public static void main(String[] nameServers) {
        PrintStream answers = System.out;
        System.setOut(System.err); // for answers alone, as in the launcher
        Control control = new Control(System.in, answers);
        try {
            ClusterAdmin operations = new ClusterAdmin(nameServers[0]);
            control.send(JSONObject.of("event", "ready"));
            control.serve(operations, () -> Runtime.getRuntime().halt(0));
        } catch (Throwable error) {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private ClusterAdmin(String nameServers) throws MQClientException {
        admin.setNamesrvAddr(nameServers);
        admin.setVipChannelEnabled(false);
        admin.start();
    }

    @Override
    public void createTopic(TopicRequest topic) throws Exception {
        TopicConfig config = Definitions.topic(topic);
        for (String master : masters()) admin.createAndUpdateTopicConfig(master, config);
        long deadline = System.currentTimeMillis() + ROUTE_WAIT_MS;
        while (!routed(config)) {
            if (System.currentTimeMillis() > deadline) throw new IllegalStateException("the name server has no route to topic " + topic.name() + " after " + ROUTE_WAIT_MS + " ms");
            Thread.sleep(20);
        }
    }

    @Override
    public void createGroup(GroupRequest group) throws Exception {
        for (String master : masters()) admin.createAndUpdateSubscriptionGroupConfig(master, Definitions.group(group));
        for (String topic : group.topics()) {
            Map<MessageQueue, OffsetWrapper> positions = positions(topic, group.name());
            for (Map.Entry<MessageQueue, TopicOffset> entry : queues(topic).entrySet()) {
                MessageQueue queue = entry.getKey();
                if (positions.containsKey(queue) && positions.get(queue).getConsumerOffset() >= 0) continue;
                admin.updateConsumeOffset(masterOf(queue.getBrokerName()), group.name(), queue, entry.getValue().getMaxOffset());
            }
        }
    }

    @Override
    public JSONArray offsets(String topic, String group) throws Exception {
        Map<MessageQueue, OffsetWrapper> positions = group == null ? Map.of() : positions(topic, group);
        Map<MessageQueue, TopicOffset> queues = queues(topic);
        List<MessageQueue> sorted = new ArrayList<>(queues.keySet());
        sorted.sort(Comparator.comparing(MessageQueue::getBrokerName).thenComparing(MessageQueue::getQueueId));
        JSONArray result = new JSONArray();
        for (MessageQueue queue : sorted) {
            OffsetWrapper position = positions.get(queue);
            result.add(JSONObject.of("queueId", queue.getQueueId(), "minOffset", queues.get(queue).getMinOffset(), "maxOffset",
                queues.get(queue).getMaxOffset(), "committedOffset", position == null ? -1 : position.getConsumerOffset()));
        }
        return result;
    }

    @Override
    public void rewind(String topic, String group, int queueId, long offset) throws Exception {
        for (Map.Entry<MessageQueue, TopicOffset> entry : queues(topic).entrySet()) {
            MessageQueue queue = entry.getKey();
            if (queueId >= 0 && queueId != queue.getQueueId()) continue;
            long target = Math.max(entry.getValue().getMinOffset(), Math.min(offset, entry.getValue().getMaxOffset()));
            admin.resetOffsetByQueueId(masterOf(queue.getBrokerName()), group, topic, queue.getQueueId(), target);
        }
    }

    private Map<MessageQueue, TopicOffset> queues(String topic) throws Exception {
        return admin.examineTopicStats(topic).getOffsetTable();
    }

    /** A group that has consumed nothing yet has no statistics, and asking for them is an error. */
    private Map<MessageQueue, OffsetWrapper> positions(String topic, String group) throws Exception {
        try {
            return admin.examineConsumeStats(group, topic).getOffsetTable();
        } catch (MQClientException | MQBrokerException error) {
            return Map.of();
        }
    }

    private boolean routed(TopicConfig config) throws Exception {
        try {
            TopicRouteData route = admin.examineTopicRouteInfo(config.getTopicName());
            if (route.getQueueDatas().isEmpty()) return false;
            QueueData queues = route.getQueueDatas().get(0);
            return queues.getWriteQueueNums() == config.getWriteQueueNums() && queues.getPerm() == config.getPerm();
        } catch (MQClientException error) {
            if (error.getResponseCode() == ResponseCode.TOPIC_NOT_EXIST) return false;
            throw error;
        }
    }

    private List<String> masters() throws Exception {
        ClusterInfo cluster = admin.examineBrokerClusterInfo();
        List<String> masters = new ArrayList<>();
        for (BrokerData broker : cluster.getBrokerAddrTable().values()) masters.add(broker.selectBrokerAddr());
        if (masters.isEmpty()) throw new IllegalStateException("the name server knows no broker");
        return masters;
    }

    private String masterOf(String brokerName) throws Exception {
        return admin.examineBrokerClusterInfo().getBrokerAddrTable().get(brokerName).selectBrokerAddr();
    }
}

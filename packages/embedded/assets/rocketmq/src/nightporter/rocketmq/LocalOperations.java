package nightporter.rocketmq;

import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import com.github.benmanes.caffeine.cache.LoadingCache;
import java.lang.reflect.Field;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.offset.ConsumerOffsetManager;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager;
import org.apache.rocketmq.proxy.service.route.TopicRouteService;
import org.apache.rocketmq.remoting.protocol.route.QueueData;
import org.apache.rocketmq.remoting.protocol.route.TopicRouteData;

/** The operations on the broker inside this JVM: milliseconds each, where an admin client would need seconds. */
final class LocalOperations implements Operations {
    private static final long ROUTE_WAIT_MS = 10_000;

    private final BrokerController broker;
    private final RouteInfoManager nameServerRoutes;
    private final LoadingCache<String, ?> proxyRoutes;

    LocalOperations(BrokerController broker, RouteInfoManager nameServerRoutes, TopicRouteService proxyRouteService) throws Exception {
        this.broker = broker;
        this.nameServerRoutes = nameServerRoutes;
        this.proxyRoutes = routeCache(proxyRouteService);
    }

    @Override
    public void createTopic(TopicRequest topic) throws Exception {
        TopicConfig config = Definitions.topic(topic);
        broker.getTopicConfigManager().updateTopicConfig(config);
        broker.registerIncrementBrokerData(config, broker.getTopicConfigManager().getDataVersion());
        awaitRoute(config);
        // A client that asked too early has left "no route" in the proxy's cache, where it would stay for seconds.
        proxyRoutes.invalidate(topic.name());
    }

    @Override
    public void createGroup(GroupRequest group) throws Exception {
        broker.getSubscriptionGroupManager().updateSubscriptionGroupConfig(Definitions.group(group));
        ConsumerOffsetManager offsets = broker.getConsumerOffsetManager();
        for (String topic : group.topics()) {
            for (int queueId = 0; queueId < topicConfig(topic).getReadQueueNums(); queueId++) {
                if (offsets.queryOffset(group.name(), topic, queueId) >= 0) continue;
                offsets.commitOffset("createGroup", group.name(), topic, queueId, maxOffset(topic, queueId));
            }
        }
    }

    @Override
    public JSONArray offsets(String topic, String group) throws Exception {
        JSONArray queues = new JSONArray();
        for (int queueId = 0; queueId < topicConfig(topic).getReadQueueNums(); queueId++) {
            long committed = group == null ? -1 : broker.getConsumerOffsetManager().queryOffset(group, topic, queueId);
            queues.add(JSONObject.of("queueId", queueId, "minOffset", minOffset(topic, queueId), "maxOffset",
                maxOffset(topic, queueId), "committedOffset", committed));
        }
        return queues;
    }

    @Override
    public void rewind(String topic, String group, int queueId, long offset) throws Exception {
        int queues = topicConfig(topic).getReadQueueNums();
        for (int each = 0; each < queues; each++) {
            if (queueId >= 0 && queueId != each) continue;
            long target = Math.max(minOffset(topic, each), Math.min(offset, maxOffset(topic, each)));
            // Also releases the queue's FIFO lock, at the group's next receive.
            broker.getConsumerOffsetManager().assignResetOffset(topic, group, each, target);
        }
    }

    private TopicConfig topicConfig(String topic) {
        TopicConfig config = broker.getTopicConfigManager().selectTopicConfig(topic);
        if (config == null) throw new IllegalArgumentException("no topic " + topic);
        return config;
    }

    private long maxOffset(String topic, int queueId) throws Exception {
        return broker.getMessageStore().getMaxOffsetInQueue(topic, queueId);
    }

    private long minOffset(String topic, int queueId) {
        return broker.getMessageStore().getMinOffsetInQueue(topic, queueId);
    }

    private void awaitRoute(TopicConfig config) throws Exception {
        long deadline = System.currentTimeMillis() + ROUTE_WAIT_MS;
        while (!routed(config)) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("the name server has no route to topic " + config.getTopicName() + " after " + ROUTE_WAIT_MS + " ms");
            }
            Thread.sleep(5);
        }
    }

    private boolean routed(TopicConfig config) {
        TopicRouteData route = nameServerRoutes.pickupTopicRouteData(config.getTopicName());
        if (route == null || route.getQueueDatas().isEmpty()) return false;
        QueueData queues = route.getQueueDatas().get(0);
        return queues.getWriteQueueNums() == config.getWriteQueueNums() && queues.getPerm() == config.getPerm();
    }

    /** The proxy offers no way to forget a route, so its cache is taken by reflection. */
    private static LoadingCache<String, ?> routeCache(TopicRouteService service) throws Exception {
        Field field = TopicRouteService.class.getDeclaredField("topicCache");
        field.setAccessible(true);
        @SuppressWarnings("unchecked")
        LoadingCache<String, ?> cache = (LoadingCache<String, ?>) field.get(service);
        return cache;
    }
}

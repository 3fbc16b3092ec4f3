package nightporter.rocketmq;

import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.constant.PermName;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/** RocketMQ's own terms for what is asked of us. */
final class Definitions {
    private Definitions() {}

    static TopicConfig topic(Operations.TopicRequest topic) {
        int permission = topic.writable() ? PermName.PERM_READ | PermName.PERM_WRITE : PermName.PERM_READ;
        TopicConfig config = new TopicConfig(topic.name(), topic.queues(), topic.queues(), permission);
        config.getAttributes().put("+message.type", topic.type());
        config.setOrder(topic.type().equals("FIFO"));
        return config;
    }

    static SubscriptionGroupConfig group(Operations.GroupRequest group) {
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setGroupName(group.name());
        config.setConsumeMessageOrderly(group.ordered());
        config.setRetryMaxTimes(group.retryMaxTimes());
        return config;
    }
}

package nightporter.rocketmq;

import com.alibaba.fastjson2.JSONArray;

/** What a stack's owner may ask of its broker. Every call returns only once its effect can be relied upon. */
interface Operations {
    /** Creates a topic, or changes its type, queue count or permission. */
    void createTopic(TopicRequest topic) throws Exception;

    /** Creates a consumer group, or changes its settings. */
    void createGroup(GroupRequest group) throws Exception;

    /** One object for each queue: queueId, minOffset, maxOffset, committedOffset (-1: none). */
    JSONArray offsets(String topic, String group) throws Exception;

    /** Moves a group to an offset, clamped to what the queue holds; queueId -1 means every queue. */
    void rewind(String topic, String group, int queueId, long offset) throws Exception;

    record TopicRequest(String name, String type, int queues, boolean writable) {}

    /** Positions on {@code topics} start at the present end, so that whatever is sent from now on is delivered. */
    record GroupRequest(String name, boolean ordered, int retryMaxTimes, java.util.List<String> topics) {}
}

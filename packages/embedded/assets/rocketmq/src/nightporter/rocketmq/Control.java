package nightporter.rocketmq;

import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * The conversation with the process that started this JVM: one JSON object a line, requests on standard input and answers on
 * standard output. The end of standard input means that the owner is gone, however it died, so the server stops as well.
 */
final class Control {
    private final InputStream requests;
    private final PrintStream answers;

    Control(InputStream requests, PrintStream answers) {
        this.requests = requests;
        this.answers = answers;
    }

    synchronized void send(JSONObject message) {
        answers.println(message.toJSONString());
        answers.flush();
    }

    /** Answers requests until one asks to stop, or until the owner is gone. */
    void serve(Operations operations, Runnable stop) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(requests, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JSONObject request = JSON.parseObject(line);
            if ("stop".equals(request.getString("operation"))) break;
            send(answer(operations, request));
        }
        stop.run();
    }

    private static JSONObject answer(Operations operations, JSONObject request) {
        JSONObject answer = JSONObject.of("id", request.get("id"));
        try {
            answer.put("result", perform(operations, request));
        } catch (Throwable error) {
            error.printStackTrace();
            answer.put("error", error.toString());
        }
        return answer;
    }

    private static JSONArray perform(Operations operations, JSONObject request) throws Exception {
        switch (request.getString("operation")) {
            case "createTopic" -> operations.createTopic(new Operations.TopicRequest(request.getString("name"),
                request.getString("type"), request.getIntValue("queues"), request.getBooleanValue("writable")));
            case "createGroup" -> operations.createGroup(new Operations.GroupRequest(request.getString("name"),
                request.getBooleanValue("ordered"), request.getIntValue("retryMaxTimes"), topics(request)));
            case "offsets" -> {
                return operations.offsets(request.getString("topic"), request.getString("group"));
            }
            case "rewind" -> operations.rewind(request.getString("topic"), request.getString("group"),
                request.getIntValue("queueId"), request.getLongValue("offset"));
            default -> throw new IllegalArgumentException("no operation " + request.getString("operation"));
        }
        return new JSONArray();
    }

    private static List<String> topics(JSONObject request) {
        return request.getList("topics", String.class);
    }
}

package nightporter.rocketmq;

import com.alibaba.fastjson2.JSONObject;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.BrokerStartup;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.namesrv.NamesrvStartup;
import org.apache.rocketmq.proxy.ProxyStartup;
import org.apache.rocketmq.proxy.config.Configuration;
import org.apache.rocketmq.proxy.config.ConfigurationManager;
import org.apache.rocketmq.proxy.config.ProxyConfig;
import org.apache.rocketmq.proxy.grpc.interceptor.ContextInterceptor;
import org.apache.rocketmq.proxy.grpc.interceptor.GlobalExceptionInterceptor;
import org.apache.rocketmq.proxy.grpc.interceptor.HeaderInterceptor;
import org.apache.rocketmq.proxy.grpc.v2.GrpcMessagingApplication;
import org.apache.rocketmq.proxy.metrics.ProxyMetricsManager;
import org.apache.rocketmq.proxy.processor.DefaultMessagingProcessor;
import org.apache.rocketmq.proxy.service.ServiceManager;
import org.apache.rocketmq.proxy.service.ServiceManagerFactory;

/**
 * Name server, broker and gRPC proxy in one JVM, every listener on 127.0.0.1.
 * Arguments: the configuration files of name server, broker and proxy. Then it talks as {@link Control} says.
 */
public final class Launcher {
    private static final long REGISTRATION_WAIT_MS = 30_000;

    private Launcher() {}

    public static void main(String[] files) {
        PrintStream answers = System.out;
        System.setOut(System.err); // RocketMQ prints greetings; standard output is for answers alone
        Control control = new Control(System.in, answers);
        try {
            run(control, files);
        } catch (Throwable error) {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private static void run(Control control, String[] files) throws Exception {
        NamesrvController nameServer = NamesrvStartup.main0(new String[] {"-c", files[0]});
        ProxyConfig proxyConfig = proxyConfig(files[2]);
        ProxyStartup.initThreadPoolMonitor();
        ThreadPoolExecutor executor = ProxyStartup.createServerExecutor();
        BrokerController broker = BrokerStartup.createBrokerController(new String[] {"-c", files[1]});
        ProxyMetricsManager.initLocalMode(broker.getBrokerMetricsManager(), proxyConfig);
        ServiceManager services = ServiceManagerFactory.createForLocalMode(broker);
        DefaultMessagingProcessor processor = new Processor(services);
        GrpcMessagingApplication application = GrpcMessagingApplication.create(processor);
        broker.start();
        register(broker, nameServer);
        processor.start();
        application.start();
        listen(proxyConfig, application, executor);
        persistOften(broker);
        control.send(JSONObject.of("event", "ready"));
        control.serve(new LocalOperations(broker, nameServer.getRouteInfoManager(), services.getTopicRouteService()), () -> halt(broker));
    }

    private static ProxyConfig proxyConfig(String file) throws Exception {
        System.setProperty(Configuration.CONFIG_PATH_PROPERTY, file);
        ConfigurationManager.initEnv();
        ConfigurationManager.initConfig();
        return ConfigurationManager.getProxyConfig();
    }

    /**
     * The broker registers once when it starts, but skips it silently while its client has not yet probed the name server; its
     * next try comes 10 s later. A client that asks in between is told "no route", and that answer is cached.
     */
    private static void register(BrokerController broker, NamesrvController nameServer) throws Exception {
        String name = broker.getBrokerConfig().getBrokerName();
        long deadline = System.currentTimeMillis() + REGISTRATION_WAIT_MS;
        while (!nameServer.getRouteInfoManager().getAllClusterInfo().getBrokerAddrTable().containsKey(name)) {
            if (System.currentTimeMillis() > deadline) throw new IllegalStateException("the broker could not register within " + REGISTRATION_WAIT_MS + " ms");
            broker.registerBrokerAll(true, false, true);
            Thread.sleep(10);
        }
    }

    /** ProxyStartup would listen on every interface; otherwise this is the same server. */
    private static void listen(ProxyConfig config, GrpcMessagingApplication application, ThreadPoolExecutor executor) throws Exception {
        NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", config.getGrpcServerPort()))
            .executor(executor)
            .maxInboundMessageSize(config.getGrpcMaxInboundMessageSize())
            .maxConnectionIdle(config.getGrpcClientIdleTimeMills(), TimeUnit.MILLISECONDS)
            .addService(application)
            .intercept(new GlobalExceptionInterceptor())
            .intercept(new ContextInterceptor())
            .intercept(new HeaderInterceptor())
            .build()
            .start();
    }

    /** The broker persists offsets late (its own timer starts after 10 s): after a kill, hundreds of messages would come again. */
    private static void persistOften(BrokerController broker) {
        long intervalMs = Long.getLong("nightporter.persistIntervalMs", 500);
        Thread thread = new Thread(() -> {
            while (true) {
                try {
                    Thread.sleep(intervalMs);
                    persistOffsets(broker);
                } catch (InterruptedException stopped) {
                    return;
                } catch (RuntimeException error) {
                    error.printStackTrace();
                }
            }
        }, "persist-offsets");
        thread.setDaemon(true);
        thread.start();
    }

    private static void persistOffsets(BrokerController broker) {
        broker.getConsumerOffsetManager().persist();
        broker.getConsumerOrderInfoManager().persist();
    }

    /** An orderly shutdown takes 8 to 18 s. What counts is on disk after this; the next start runs the ordinary recovery. */
    private static void halt(BrokerController broker) {
        broker.getMessageStore().flush();
        persistOffsets(broker);
        Runtime.getRuntime().halt(0);
    }

    /** Only opens the constructor, so that the launcher keeps hold of the services. */
    private static final class Processor extends DefaultMessagingProcessor {
        Processor(ServiceManager services) {
            super(services);
        }
    }
}

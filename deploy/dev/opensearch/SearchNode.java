import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;

/**
 * One OpenSearch node from Maven's jars on a flat class path, for development and tests only.
 *
 * The distribution's own main class loads plugins from folders and refuses to run as root; the constructor used here
 * takes the plugin classes instead and asks neither. Settings come as key=value arguments.
 */
public final class SearchNode extends Node {
    private static final List<Class<? extends Plugin>> PLUGINS = List.of(
            org.opensearch.transport.Netty4Plugin.class,
            org.opensearch.painless.PainlessPlugin.class,
            org.opensearch.analysis.common.CommonAnalysisPlugin.class,
            org.opensearch.index.reindex.ReindexPlugin.class,
            org.opensearch.search.aggregations.matrix.MatrixAggregationPlugin.class,
            org.opensearch.index.mapper.MapperExtrasPlugin.class,
            org.opensearch.ingest.common.IngestCommonPlugin.class,
            org.opensearch.join.ParentJoinPlugin.class,
            org.opensearch.script.mustache.MustachePlugin.class);

    private SearchNode(Environment environment) {
        super(environment, PLUGINS, true);
    }

    public static void main(String[] args) throws Exception {
        Settings.Builder settings = Settings.builder();
        for (String arg : args) {
            int at = arg.indexOf('=');
            settings.put(arg.substring(0, at), arg.substring(at + 1));
        }
        Settings built = settings.build();
        Path config = Path.of(built.get("path.home"), "config");
        Environment environment =
                InternalSettingsPreparer.prepareEnvironment(built, Map.of(), config, () -> "sluice-dev");
        SearchNode node = new SearchNode(environment);
        CountDownLatch stopped = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
            } catch (Exception e) {
                e.printStackTrace();
            }
            stopped.countDown();
        }));
        node.start();
        stopped.await();
    }
}

package withservers

import (
	"context"
	"strings"

	"github.com/sluice-platform/sluice/libs/devserver"
)

const fromPackages = "local package"

func localPostgres(ctx context.Context, dir string) (running, error) {
	pg, err := devserver.StartPostgres(ctx, devserver.PostgresOptions{Dir: dir, NoSync: true})
	if err != nil {
		return running{}, err
	}
	return running{env: []string{EnvPostgres + "=" + pg.URL()}, from: fromPackages, stop: pg.Stop}, nil
}

func localRedis(ctx context.Context, dir string) (running, error) {
	redis, err := devserver.StartRedis(ctx, devserver.RedisOptions{Dir: dir})
	if err != nil {
		return running{}, err
	}
	return running{env: []string{EnvRedis + "=" + redis.Addr()}, from: fromPackages, stop: redis.Stop}, nil
}

func localKafka(ctx context.Context, dir string) (running, error) {
	kafka, err := devserver.StartKafka(ctx, devserver.KafkaOptions{Dir: dir, HeapMB: 384})
	if err != nil {
		return running{}, err
	}
	brokers := strings.Join(kafka.Brokers(), ",")
	return running{env: []string{EnvKafka + "=" + brokers}, from: fromPackages, stop: kafka.Stop}, nil
}

func localSearch(ctx context.Context, dir string) (running, error) {
	search, err := devserver.StartSearch(ctx, devserver.SearchOptions{Dir: dir})
	if err != nil {
		return running{}, err
	}
	return running{
		env:  []string{EnvSearch + "=" + search.URL(), EnvSearchFlavor + "=" + search.Flavor()},
		from: fromPackages, stop: search.Stop,
	}, nil
}

package webhooks

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
)

// Register adds the operations to a.
func (s *Handlers) Register(a *api.API) {
	tags := []string{"webhooks"}
	body := reflect.TypeFor[Webhook]()
	const all, one = "/v1/webhooks", "/v1/webhooks/{id}"
	api.Register(a, huma.Operation{OperationID: "create-webhook", Method: http.MethodPost, Path: all, Tags: tags,
		Summary: "Create a webhook, and see its secret once", DefaultStatus: http.StatusCreated,
		Description: "Events are POSTed as CloudEvents 1.0 in structured mode, signed after Standard Webhooks " +
			"(headers webhook-id, webhook-timestamp, webhook-signature). 2xx takes an event, 410 ends the webhook, all else is tried again for a day."}, body, s.createWebhook)
	api.Register(a, huma.Operation{OperationID: "list-webhooks", Method: http.MethodGet, Path: all, Tags: tags,
		Summary: "List webhooks, by id"}, nil, s.listWebhooks)
	api.Register(a, huma.Operation{OperationID: "get-webhook", Method: http.MethodGet, Path: one, Tags: tags,
		Summary: "Get a webhook"}, nil, s.getWebhook)
	api.Register(a, huma.Operation{OperationID: "put-webhook", Method: http.MethodPut, Path: one, Tags: tags,
		Summary: "Replace a webhook; its secret stays"}, body, s.putWebhook)
	api.Register(a, huma.Operation{OperationID: "delete-webhook", Method: http.MethodDelete, Path: one, Tags: tags,
		Summary: "Delete a webhook, its secrets and its deliveries", DefaultStatus: http.StatusNoContent}, nil, s.deleteWebhook)
	api.Register(a, huma.Operation{OperationID: "rotate-webhook-secret", Method: http.MethodPost, Path: one + "/secret", Tags: tags,
		Summary: "Make a new secret, and see it once",
		Description: "Requests carry a signature by each secret until the former one ends, so that receivers can change over. " +
			"A third ends the first at once."}, nil, s.rotateWebhookSecret)
	api.Register(a, huma.Operation{OperationID: "test-webhook", Method: http.MethodPost, Path: one + "/test", Tags: tags,
		Summary: "Send a test event now, and see what the endpoint answers"}, nil, s.testWebhook)
	s.registerDeliveries(a, tags)
}

func (s *Handlers) registerDeliveries(a *api.API, tags []string) {
	const one = "/v1/webhooks/{id}"
	api.Register(a, huma.Operation{OperationID: "list-webhook-deliveries", Method: http.MethodGet, Path: one + "/deliveries", Tags: tags,
		Summary: "What a webhook was sent, the newest first; state=dead lists the dead letters"}, nil, s.listDeliveries)
	api.Register(a, huma.Operation{OperationID: "redeliver-webhook-delivery", Method: http.MethodPost, Path: one + "/deliveries/{delivery}/redeliver", Tags: tags,
		Summary: "Deliver an event once more, under the same webhook-id"}, nil, s.redeliver)
	api.Register(a, huma.Operation{OperationID: "redeliver-dead-webhook-deliveries", Method: http.MethodPost, Path: one + "/redeliver", Tags: tags,
		Summary: "Deliver all dead letters of a webhook once more"}, nil, s.redeliverDead)
}

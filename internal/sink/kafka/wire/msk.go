package wire

import (
	"context"
	"errors"
	"net/http"
	"sync"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/aws_msk_iam_v2"
)

// msk is AWS_MSK_IAM, with the credentials that AWS's SDK finds: environment, shared files, web identity, instance.
type msk struct {
	region string

	mu        sync.Mutex
	mechanism *aws_msk_iam_v2.Mechanism
}

func newMSK(region string) *msk { return &msk{region: region} }

func (m *msk) start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	mechanism, err := m.load(ctx)
	if err != nil {
		return nil, nil, err
	}
	session, first, err := mechanism.Start(ctx)
	if err != nil {
		return nil, nil, &loginFailure{Class: Retriable, Err: err,
			Remedy: "check that the pod has AWS credentials: a service account with a role, an instance profile, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"}
	}
	return session, first, nil
}

// load reads AWS's configuration at the first connection; its credentials renew themselves after that.
func (m *msk) load(ctx context.Context) (*aws_msk_iam_v2.Mechanism, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mechanism != nil {
		return m.mechanism, nil
	}
	// no goroutine stays
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })
	loaded, err := config.LoadDefaultConfig(ctx, config.WithRegion(m.region), config.WithHTTPClient(client))
	if err != nil {
		return nil, &loginFailure{Class: Retriable, Remedy: "check the AWS configuration: AWS_PROFILE, AWS_CONFIG_FILE", Err: err}
	}
	if loaded.Region == "" {
		return nil, &loginFailure{Class: Fatal, Remedy: "set kafka.sasl.region, or AWS_REGION", Err: errors.New("the AWS region is not known")}
	}
	m.mechanism = aws_msk_iam_v2.NewMechanism(loaded)
	return m.mechanism, nil
}

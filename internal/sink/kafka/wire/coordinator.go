package wire

import (
	"context"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/findcoordinator"
)

// coordinator is the broker that keeps the transactions of an id.
func (l *leaders) coordinator(ctx context.Context, transactionalID string) (int32, error) {
	l.mu.Lock()
	known, ok := l.coordinators[transactionalID]
	l.mu.Unlock()
	if ok {
		return known, nil
	}
	answer, err := ask[*findcoordinator.Response](ctx, l.link, anyBroker, &findcoordinator.Request{Key: transactionalID, KeyType: 1})
	if err != nil {
		return 0, err
	}
	if answer.ErrorCode != 0 {
		return 0, &Error{Code: answer.ErrorCode, Message: answer.ErrorMessage, Request: "find the coordinator of transactional id " + transactionalID,
			Needs: writeOn(transactionalID)}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.coordinators[transactionalID] = answer.NodeID
	return answer.NodeID, nil
}

func (l *leaders) forgetCoordinator(transactionalID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.coordinators, transactionalID)
}

func writeOn(transactionalID string) string { return "WRITE on transactional id " + transactionalID }

func askCoordinator[Answer protocol.Message](ctx context.Context, l *leaders, transactionalID string, request protocol.Message) (Answer, error) {
	broker, err := l.coordinator(ctx, transactionalID)
	if err != nil {
		var none Answer
		return none, err
	}
	answer, err := ask[Answer](ctx, l.link, broker, request)
	l.doubtCoordinator(transactionalID, err)
	return answer, err
}

// doubtCoordinator forgets who the coordinator is after an error that may come from somebody else being it.
func (l *leaders) doubtCoordinator(transactionalID string, err error) {
	if err == nil {
		return
	}
	switch Code(err) {
	case 0, codeCoordinatorLoading, codeCoordinatorNotAvailable, codeNotCoordinator:
		l.forgetCoordinator(transactionalID)
	}
}

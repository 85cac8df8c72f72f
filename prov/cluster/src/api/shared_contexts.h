// Shared contexts (fi_endpoint(3)). An application binds a shared context to several endpoints of a domain.
// The endpoints use the shared context instead of transmit or receive contexts of their own.
//
// A SharedTx is only a name, because each endpoint has its own queues for sends anyway. So an application can
// bind a SharedTx to an enabled endpoint, and close it before the endpoint. Sandia OpenSHMEM does both. A
// SharedRx holds receives. A message to any endpoint that shares them takes the oldest receive that matches
// (protocol/shared_receives.h). The completion goes to the queues and counters of that endpoint.
#pragma once

#include <rdma/fi_endpoint.h>

#include <mutex>
#include <vector>

#include "api/domain.h"
#include "api/fid_object.h"
#include "engine/engine.h"
#include "protocol/shared_receives.h"

namespace cluster::api {

class SharedTx : public fid_stx, public RefCounted {
 public:
  using Handle = fid_stx;

  static int open(Domain& domain, const fi_tx_attr* attributes, fid_stx** handle, void* context);
  Domain& domain() { return *domain_; }

 private:
  SharedTx(Domain& domain, void* context);

  Ref<Domain> domain_;
};

class SharedRx : public fid_ep, public RefCounted {
 public:
  using Handle = fid_ep;

  static int open(Domain& domain, const fi_rx_attr* attributes, fid_ep** handle, void* context);

  Domain& domain() { return *domain_; }
  protocol::SharedReceives& receives() { return receives_; }
  /// From now until remove_engine(), messages to the endpoint of `engine` may take receives of this context.
  /// `queue` and `counter`: where the endpoint reports receives, or null.
  void add_engine(engine::Engine& engine, protocol::CompletionQueue* queue, protocol::Counter* counter);
  void remove_engine(engine::Engine& engine);

  /// Posts a receive. `op.from` is ignored unless the context directs receives of this kind
  /// (FI_DIRECTED_RECV).
  ssize_t receive(protocol::RecvOp op);
  /// Cancels one receive that has this `context`. One of the endpoints that share the receives reports the
  /// cancellation.
  ssize_t cancel(void* context);
  int control(int command, void* argument);
  /// Returns true if receives without flags report their success even to a queue bound with
  /// FI_SELECTIVE_COMPLETION.
  bool reports_receives() const { return reports_; }

 private:
  SharedRx(Domain& domain, const fi_rx_attr& attributes, void* context);

  struct Taker {
    engine::Engine* engine;
    protocol::CompletionQueue* queue;
    protocol::Counter* counter;
  };

  InheritedFid inherited_fid_{fid};
  Ref<Domain> domain_;
  std::uint64_t caps_;
  bool reports_;
  protocol::SharedReceives receives_;
  std::mutex mutex_;  ///< taken before the lock of an engine
  std::vector<Taker> takers_;
};

}  // namespace cluster::api

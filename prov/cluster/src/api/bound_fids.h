// The objects that are bound to an endpoint with fi_ep_bind: an address vector, queues, counters and shared
// contexts. The endpoint holds a reference to each of them except a shared transmit context. So the
// application can close a shared transmit context before the endpoint. It must close the endpoint before the
// other objects.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "api/av.h"
#include "api/cntr.h"
#include "api/cq.h"
#include "api/ep_options.h"
#include "api/eq.h"
#include "api/shared_contexts.h"

namespace cluster::api {

class BoundFids {
 public:
  explicit BoundFids(Domain& domain) : domain_(domain) {}

  int bind(fid_t object, std::uint64_t flags);
  /// Checks that every object is bound that an endpoint with these options needs. Returns 0, or logs which
  /// object is missing and returns a negative libfabric error.
  int check_complete(const EpOptions& options) const;

  Av& av() const { return *av_; }
  Eq* eq() const { return eq_ ? &*eq_ : nullptr; }
  CompletionMode completion_mode() const;
  /// Reports that an operation has failed before the engine accepted it. The report goes to the queue and the
  /// counter for operations of this kind.
  void report_failure(const protocol::Completion& completion) const;
  /// Returns the queue for operations of this kind, or null.
  protocol::CompletionQueue* queue_for(protocol::Completion::Kind kind) const;
  protocol::EndpointBindings engine_bindings(const EpOptions& options) const;
  /// From now until remove_engine(), reads of the bound completion queues and counters make progress on
  /// `engine` (progress.h). If the endpoint connects or may join teams, reads of the event queue make
  /// progress on `engine`, too.
  void add_engine(engine::Engine& engine, const EpOptions& options) const;
  void remove_engine(engine::Engine& engine) const;

 private:
  enum Event : std::size_t { send, receive, write, read, remote_write, remote_read, kEvents };

  int bind_cq(Cq& cq, std::uint64_t flags);
  int bind_cntr(Cntr& cntr, std::uint64_t flags);
  protocol::Counter* counter_of(Event event) const;
  template <typename Visit>
  void each_progress(Visit&& visit) const;

  Domain& domain_;
  Ref<Av> av_;
  Ref<Eq> eq_;
  bool shared_tx_ = false;
  Ref<SharedRx> shared_rx_;
  Ref<Cq> tx_cq_;
  Ref<Cq> rx_cq_;
  bool tx_selective_ = false;
  bool rx_selective_ = false;
  std::vector<std::unique_ptr<Ref<Cntr>>> cntrs_;
  std::array<Cntr*, kEvents> cntr_of_{};  ///< the counter for each event, or null
};

}  // namespace cluster::api

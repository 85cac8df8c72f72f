// An event queue. The provider writes an event when a peer is lost or a group is joined (endpoint.cc), and
// when joining a team succeeds or fails (mc.cc). The provider also writes an event for each step of a
// connection (connected_end.cc, passive_endpoint.cc). The application may write events of its own. A read of
// an empty queue makes progress on passive endpoints, and on endpoints that connect or may join teams.
//
// The queue's descriptor becomes readable when an event is written. It also becomes readable when an engine
// has work, if this engine belongs to an endpoint on which reads make progress.
#pragma once

#include <rdma/fi_eq.h>

#include <cstddef>
#include <deque>
#include <vector>

#include "api/event_wait_set.h"
#include "api/fabric.h"
#include "api/progress.h"
#include "base/lock.h"

namespace cluster::api {

class Eq : public fid_eq, public RefCounted {
 public:
  using Handle = fid_eq;

  static int open(Fabric& fabric, const fi_eq_attr* attributes, fid_eq** handle, void* context);
  ~Eq();

  ssize_t read(std::uint32_t* event, void* buffer, std::size_t size, std::uint64_t flags);
  ssize_t write(std::uint32_t event, const void* buffer, std::size_t size, std::uint64_t flags);
  /// Adds an event of the provider about `object`. If the queue is full, or there is no memory for the event,
  /// the event is lost. After the application has read all events in the queue, its next read returns
  /// -FI_EOVERRUN.
  void report(std::uint32_t event, const struct fid& object, const void* buffer, std::size_t size);
  /// Adds an event of a connection, even if the queue is full, because no later event says the same.
  /// `object`: the endpoint to which the bytes refer. `info`: the fi_info in the event, which belongs to the
  /// application once the application has read the event. Throws if there is no memory.
  void add(std::uint32_t event, const struct fid& object, std::vector<std::byte> bytes,
           fi_info* info = nullptr);
  /// Called when an object closes. Removes the provider's events and errors that name this object.
  void forget(const struct fid& object);
  /// Makes a later read return -FI_EOVERRUN, because there was no memory for an event.
  void note_lost_event();
  /// Adds an error event: an asynchronous operation of `object` has failed. `data`: what the peer says about
  /// the failure (err_data).
  void report_error(struct fid& object, Status cause, ConstBytes data = {});
  ssize_t read_error(fi_eq_err_entry* entry, std::uint64_t flags);
  ssize_t wait(std::uint32_t* event, void* buffer, std::size_t size, int timeout, std::uint64_t flags);

  /// Implements fi_trywait. Returns 0 if the descriptor is armed and the queue is empty. Then the application
  /// can sleep on the descriptor.
  int arm();
  /// Makes progress. Returns true if there is something to read.
  bool has_events();
  /// Returns the engines on which reads make progress: those of passive endpoints, and of endpoints that
  /// connect or may join teams.
  Progress& progress() { return progress_; }

 private:
  struct Event {
    std::uint32_t kind = 0;
    std::vector<std::byte> bytes = {};  ///< an error event has an fi_eq_err_entry here
    bool error = false;
    const struct fid* object = nullptr;      ///< the object of an event of the provider
    fi_info* info = nullptr;                 ///< the bytes refer to it; freed here if nobody reads the event
    std::vector<std::byte> error_data = {};  ///< err_data of an error event
  };

  Eq(Fabric& fabric, std::size_t events_max, fi_wait_obj wait_object, void* context);
  void free(const Event& event) const;
  // The callers of these functions hold the lock, except for prepare_sleep() and occupied(), which take it
  // themselves.
  void pop();
  void clear_if_empty();
  bool prepare_sleep();
  void push(Event&& event);
  bool push_within_limit(Event&& event);
  void note_overrun();
  bool occupied();

  InheritedFid inherited_fid_{fid};
  Ref<Fabric> fabric_;
  SpinLock lock_;
  std::deque<Event> events_;
  std::size_t events_max_;
  bool overrun_ = false;
  std::vector<std::byte> read_data_;  ///< the err_data of the error that was read last
  Progress progress_;
  WaitSetMembership membership_;
};

}  // namespace cluster::api

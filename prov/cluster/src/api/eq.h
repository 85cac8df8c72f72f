// An event queue. The provider puts lost peers and joined groups (endpoint.cc) and the outcome of joining a team (mc.cc) into
// it, the application whatever it likes. Reading it makes progress on endpoints that may join teams.
//
// Its descriptor is readable when an event comes, and when an engine that makes progress here has something to do.
#pragma once

#include <rdma/fi_eq.h>

#include <cstddef>
#include <deque>
#include <vector>

#include "api/fabric.h"
#include "api/progress.h"
#include "base/lock.h"

namespace cluster::api {

class Eq : public fid_eq, public RefCounted {
 public:
  using Handle = fid_eq;

  static int open(Fabric& fabric, const fi_eq_attr* attributes, fid_eq** handle, void* context);

  ssize_t read(std::uint32_t* event, void* buffer, std::size_t size, std::uint64_t flags);
  ssize_t write(std::uint32_t event, const void* buffer, std::size_t size, std::uint64_t flags);
  /// An event of the provider. If there is no memory for one, the queue says so once the others are read (-FI_EOVERRUN).
  void report(std::uint32_t event, const void* buffer, std::size_t size);
  /// An asynchronous operation of `object` has failed.
  void report_error(struct fid& object, Status cause);
  ssize_t read_error(fi_eq_err_entry* entry, std::uint64_t flags);
  ssize_t wait(std::uint32_t* event, void* buffer, std::size_t size, int timeout, std::uint64_t flags);

  /// fi_trywait: 0 if there is no event.
  int arm();
  /// Engines whose events need progress: those of endpoints that join teams.
  Progress& progress() { return progress_; }

 private:
  struct Event {
    std::uint32_t kind = 0;
    std::vector<std::byte> bytes;  ///< of an error: fi_eq_err_entry
    bool error = false;
  };

  Eq(Fabric& fabric, std::size_t events_max, fi_wait_obj wait_object, void* context);
  // Under the lock, but for occupied().
  void pop();
  void push(Event&& event);
  bool occupied();

  InheritedFid inherited_fid_{fid};
  Ref<Fabric> fabric_;
  SpinLock lock_;
  std::deque<Event> events_;
  std::size_t events_max_;
  bool overrun_ = false;
  Progress progress_;
};

}  // namespace cluster::api

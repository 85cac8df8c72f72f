// An event queue. The provider puts the loss of peers into it (loss_reporter.h), the application what it likes.
//
// Its descriptor is readable exactly while there is an event.
#pragma once

#include <rdma/fi_eq.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "api/fabric.h"
#include "base/lock.h"
#include "engine/sleeper.h"

namespace cluster::api {

class Eq : public fid_eq, public RefCounted {
 public:
  using Handle = fid_eq;

  static int open(Fabric& fabric, const fi_eq_attr* attributes, fid_eq** handle, void* context);

  ssize_t read(std::uint32_t* event, void* buffer, std::size_t size, std::uint64_t flags);
  ssize_t write(std::uint32_t event, const void* buffer, std::size_t size, std::uint64_t flags);
  ssize_t wait(std::uint32_t* event, void* buffer, std::size_t size, int timeout, std::uint64_t flags);

  /// Opened on first use; null if waiting threads poll instead of sleeping, or no descriptors are left.
  engine::Sleeper* sleeper();
  /// fi_trywait: 0 if there is no event.
  int arm();

  fi_wait_obj wait_object() const { return wait_object_; }

 private:
  struct Event {
    std::uint32_t kind = 0;
    std::vector<std::byte> bytes;
  };

  Eq(Fabric& fabric, std::size_t events_max, fi_wait_obj wait_object, void* context);

  InheritedFid inherited_fid_{fid};
  Ref<Fabric> fabric_;
  SpinLock lock_;
  std::deque<Event> events_;
  std::size_t events_max_;
  fi_wait_obj wait_object_;
  std::unique_ptr<engine::Sleeper> sleeper_;
};

}  // namespace cluster::api

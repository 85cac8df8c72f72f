// A domain: what the endpoints of one network interface share. It holds its place in the order of
// things and the table of registered memory; address vectors, queues and counters are opened on it.
#pragma once

#include <rdma/fi_domain.h>

#include "api/eq.h"
#include "api/fabric.h"
#include "api/mr_progress.h"
#include "protocol/region_table.h"

namespace cluster::api {

class Domain : public fid_domain {
 public:
  using Handle = fid_domain;

  static int open(Fabric& fabric, const fi_info* info, fid_domain** handle, void* context);

  /// Asynchronous registration is not offered, so nothing ever arrives at a bound event queue.
  int bind(fid_t object, std::uint64_t flags);

  Fabric& fabric() { return *fabric_; }
  Platform& platform() { return fabric_->platform(); }
  RefCount& ref_count() { return ref_count_; }
  /// FI_SOCKADDR_IN, FI_SOCKADDR_IN6, or anything else for "each address says it".
  std::uint32_t address_format() const { return address_format_; }
  SocketAddress::Family address_family() const {
    if (address_format_ == FI_SOCKADDR_IN) return SocketAddress::Family::v4;
    return address_format_ == FI_SOCKADDR_IN6 ? SocketAddress::Family::v6 : SocketAddress::Family::none;
  }
  /// FI_PROGRESS_AUTO: endpoints serve their peers though nobody reads.
  bool automatic() const { return automatic_; }
  protocol::RegionTable& regions() { return regions_; }
  /// Who counts what peers do to the regions, and the engines by which they do it.
  MrProgress& mr_progress() { return mr_progress_; }
  /// The old model: keys are the provider's, remote addresses are virtual ones. Otherwise keys are
  /// the application's and addresses count from 0.
  bool basic_registration() const { return basic_registration_; }
  std::uint64_t next_key() { return last_key_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  Domain(Fabric& fabric, const fi_info& info, void* context);

  Ref<Fabric> fabric_;
  Ref<Eq> eq_;
  RefCount ref_count_;
  std::uint32_t address_format_;
  protocol::RegionTable regions_;
  bool basic_registration_;
  bool automatic_;
  std::atomic<std::uint64_t> last_key_{0};
  MrProgress mr_progress_;
};

}  // namespace cluster::api

// A domain: one network interface. Applications open endpoints, address vectors, queues and counters on it.
// It owns the table of registered memory regions.
#pragma once

#include <rdma/fi_domain.h>

#include <string>

#include "api/auth_key.h"
#include "api/eq.h"
#include "api/fabric.h"
#include "api/progress.h"
#include "carrier/registered_memory.h"
#include "network/endpoint_roster.h"
#include "protocol/region_table.h"

namespace cluster::api {

class Domain : public fid_domain, public RefCounted {
 public:
  using Handle = fid_domain;

  static int open(Fabric& fabric, const fi_info* info, fid_domain** handle, void* context);
  /// Returns the name with which the domain was opened; null if another provider opened it.
  static const std::string* name_of(const fid_domain& handle);

  /// Binds an event queue. The provider does not support asynchronous registration, so it never writes an
  /// event to this queue.
  int bind(fid_t object, std::uint64_t flags);

  Fabric& fabric() { return *fabric_; }
  Platform& platform() { return fabric_->platform(); }
  /// FI_SOCKADDR_IN or FI_SOCKADDR_IN6. With any other value the family of each address decides.
  std::uint32_t address_format() const { return address_format_; }
  /// True with FI_PROGRESS_AUTO: endpoints make progress without calls of the application.
  bool automatic() const { return automatic_; }
  protocol::RegionTable& regions() { return regions_; }
  /// All registered regions, for transports whose devices have to know them.
  const std::shared_ptr<carrier::RegisteredMemory>& memory() const { return memory_; }
  MrProgress& mr_progress() { return mr_progress_; }
  const std::shared_ptr<engine::EndpointRoster>& roster() const { return roster_; }
  /// True with FI_MR_BASIC: the provider draws random keys, and remote addresses are virtual. Otherwise the
  /// application chooses keys, and addresses are offsets in the region.
  bool basic_registration() const { return basic_registration_; }
  /// The key of endpoints that have none of their own.
  const AuthKey& auth_key() const { return auth_key_; }

 private:
  Domain(Fabric& fabric, const fi_info& info, void* context);

  InheritedFid inherited_fid_{fid};
  Ref<Fabric> fabric_;
  std::string name_;
  Ref<Eq> eq_;
  std::uint32_t address_format_;
  protocol::RegionTable regions_;
  bool basic_registration_;
  bool automatic_;
  MrProgress mr_progress_;
  std::shared_ptr<engine::EndpointRoster> roster_ =
      std::make_shared<engine::EndpointRoster>();  ///< of its endpoints
  std::shared_ptr<carrier::RegisteredMemory> memory_ = std::make_shared<carrier::RegisteredMemory>();
  AuthKey auth_key_;
};

}  // namespace cluster::api

// A domain, which stands for the network interface whose address its endpoints use. Applications open
// endpoints, address vectors, completion queues and counters on it. The domain owns the table of registered
// memory regions.
#pragma once

#include <rdma/fi_domain.h>

#include <string>

#include "api/auth_key.h"
#include "api/deferred_work.h"
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
  /// Returns the name with which the domain was opened, or null if another provider has opened it.
  static const std::string* name_of(const fid_domain& handle);

  /// Binds an event queue. A domain never writes an event, because the provider does not support asynchronous
  /// registration.
  int bind(fid_t object, std::uint64_t flags);

  Fabric& fabric() { return *fabric_; }
  Platform& platform() { return fabric_->platform(); }
  /// Returns FI_SOCKADDR_IN or FI_SOCKADDR_IN6 if all addresses have this format. With any other value, the
  /// family of each address determines its format.
  std::uint32_t address_format() const { return address_format_; }
  /// Returns true if data_progress is FI_PROGRESS_AUTO. Then the endpoints must make progress even if the
  /// application makes no calls.
  bool automatic() const { return automatic_; }
  protocol::RegionTable& regions() { return regions_; }
  /// Returns all registered regions, for transports whose devices have to know them.
  const std::shared_ptr<carrier::RegisteredMemory>& memory() const { return memory_; }
  MrProgress& mr_progress() { return mr_progress_; }
  /// Connects all engines with the counters that deferred work changes.
  MrProgress& work_progress() { return work_progress_; }
  DeferredWork& deferred_work() { return deferred_work_; }
  /// Implements FI_QUEUE_WORK, FI_CANCEL_WORK and FI_FLUSH_WORK.
  int control(int command, void* argument);
  const std::shared_ptr<engine::EndpointRoster>& roster() const { return roster_; }
  /// Returns true with FI_MR_BASIC: the provider draws random keys, and remote addresses are virtual
  /// addresses. Otherwise the application chooses the keys, and remote addresses are offsets in the region.
  bool basic_registration() const { return basic_registration_; }
  /// Returns the authorization key of all endpoints that have no key of their own.
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
  MrProgress work_progress_;
  DeferredWork deferred_work_;
  std::shared_ptr<engine::EndpointRoster> roster_ =
      std::make_shared<engine::EndpointRoster>();  ///< the endpoints of this domain
  std::shared_ptr<carrier::RegisteredMemory> memory_ = std::make_shared<carrier::RegisteredMemory>();
  AuthKey auth_key_;
};

}  // namespace cluster::api

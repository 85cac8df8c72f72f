// A domain: what the endpoints of one network interface share. It holds nothing but its place in
// the order of things; address vectors, queues and counters are opened on it.
#pragma once

#include <rdma/fi_domain.h>

#include "api/eq.h"
#include "api/fabric.h"

namespace cluster::api {

class Domain : public fid_domain {
 public:
  using Handle = fid_domain;

  static int open(Fabric& fabric, const fi_info* info, fid_domain** handle, void* context);

  /// Asynchronous registration is not offered, so nothing ever arrives at a bound event queue.
  int bind(fid_t object, std::uint64_t flags);

  Fabric& fabric() { return *fabric_; }
  Assembly& assembly() { return fabric_->assembly(); }
  Users& users() { return users_; }
  /// FI_SOCKADDR_IN, FI_SOCKADDR_IN6, or anything else for "each address says it".
  std::uint32_t address_format() const { return address_format_; }

 private:
  Domain(Fabric& fabric, std::uint32_t address_format, void* context);

  Use<Fabric> fabric_;
  Use<Eq> eq_;
  Users users_;
  std::uint32_t address_format_;
};

}  // namespace cluster::api

// An address vector over engine::AddressTable. FI_AV_MAP and FI_AV_TABLE are the same: a handle is the lowest
// free index. Inserting an address sends nothing.
#pragma once

#include <rdma/fi_domain.h>

#include "api/domain.h"
#include "engine/address_table.h"

namespace cluster::api {

class Av : public fid_av, public RefCounted {
 public:
  using Handle = fid_av;

  static int open(Domain& domain, fi_av_attr* attributes, fid_av** handle, void* context);

  /// `errors` is null or gets a positive error number, or 0, for each address.
  int insert(const void* addresses, std::size_t count, fi_addr_t* handles, int* errors);
  /// A name and a service, or (`service` null) an address as text: "fi_sockaddr_in://10.0.0.1:9228".
  int insert_name(const char* node, const char* service, fi_addr_t* handle, int* error);
  /// Every one of `nodes` names with every one of `services`; names count up from the digits that they end
  /// with.
  int insert_names(const char* node, std::size_t nodes, const char* service, std::size_t services,
                   fi_addr_t* handles, int* errors);
  int remove(const fi_addr_t* handles, std::size_t count);
  int lookup(fi_addr_t handle, void* address, std::size_t* size) const;

  engine::AddressTable& address_table() { return address_table_; }
  Domain& domain() { return *domain_; }

 private:
  Av(Domain& domain, void* context);

  bool insert_one(const SocketAddress& address, fi_addr_t* handle, int* error);

  engine::AddressTable address_table_;
  Ref<Domain> domain_;
};

}  // namespace cluster::api

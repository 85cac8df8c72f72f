// An address vector. It stores its addresses in a transport::AddressTable. The provider treats FI_AV_MAP and
// FI_AV_TABLE alike: a new address gets the lowest free index as its handle. Inserting an address sends
// nothing to the peer.
#pragma once

#include <rdma/fi_domain.h>

#include "api/domain.h"
#include "transport/address_table.h"

namespace cluster::api {

class Av : public fid_av, public RefCounted {
 public:
  using Handle = fid_av;

  static int open(Domain& domain, fi_av_attr* attributes, fid_av** handle, void* context);

  // The following methods implement fi_av_insert and the related calls. With FI_SYNC_ERR, `context` is an
  // array that gets 0 or a positive error number for each address.
  int insert(const void* addresses, std::size_t count, fi_addr_t* handles, std::uint64_t flags,
             void* context);
  /// Inserts the address of a node and a service. If `service` is null, `node` must be an address in
  /// libfabric's text form, such as "fi_sockaddr_in://10.0.0.1:9228".
  int insert_service(const char* node, const char* service, fi_addr_t* handle, std::uint64_t flags,
                     void* context);
  /// Inserts the addresses of `nodes` nodes, each with `services` services. The first node has the name
  /// `node`. Each further node has the name of the node before it, with the number at the end of the name
  /// increased by one. The names of the services are made from `service` in the same way.
  int insert_symmetric(const char* node, std::size_t nodes, const char* service, std::size_t services,
                       fi_addr_t* handles, std::uint64_t flags, void* context);
  int remove(fi_addr_t* handles, std::size_t count, std::uint64_t flags);
  int lookup(fi_addr_t handle, void* address, std::size_t* size);
  /// Implements fi_av_set_user_id. Fails unless the address vector was opened with FI_AV_USER_ID.
  int set_user_id(fi_addr_t handle, fi_addr_t id, std::uint64_t flags);

  transport::AddressTable& address_table() { return address_table_; }
  Domain& domain() { return *domain_; }

 private:
  Av(Domain& domain, bool has_user_ids, void* context);

  int check_insert(std::uint64_t flags, const fi_addr_t* handles, void* context, int*& errors) const;
  bool insert_name(const char* node, const char* service, std::uint64_t flags, fi_addr_t* handle, int* error);
  bool insert_one(const SocketAddress& address, std::uint64_t flags, fi_addr_t* handle, int* error);

  transport::AddressTable address_table_;
  const bool has_user_ids_;  ///< opened with FI_AV_USER_ID
  Ref<Domain> domain_;
};

}  // namespace cluster::api

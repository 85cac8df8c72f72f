// One endpoint of the provider with what it needs: the libfabric objects of one queue.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstdint>
#include <memory>
#include <string>

namespace cluster::ip {

class Endpoint {
 public:
  /// Throws std::runtime_error with one line if the provider does not offer this address and port.
  Endpoint(const std::string& address, std::uint16_t port);

  /// The number of a further node for operations. Throws std::runtime_error.
  fi_addr_t add(const std::string& address, std::uint16_t port);

  fid_ep* ep() const { return ep_.get(); }
  fid_cq* cq() const { return cq_.get(); }
  /// Readable when the queue may have completions, after may_sleep() was true.
  int wait_descriptor() const { return wait_descriptor_; }
  bool may_sleep() const;
  /// What a failed operation was told by the provider.
  std::string cause_of(const fi_cq_err_entry& error) const;

 private:
  struct Close {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
    template <typename Object>
    void operator()(Object* object) const {
      fi_close(&object->fid);
    }
  };
  template <typename Object>
  using Owned = std::unique_ptr<Object, Close>;

  // Each is closed before those above it.
  Owned<fi_info> info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_cq> cq_;
  Owned<fid_av> av_;
  Owned<fid_ep> ep_;
  int wait_descriptor_ = -1;
};

}  // namespace cluster::ip

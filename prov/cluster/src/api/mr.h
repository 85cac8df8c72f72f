// A memory region: a fid_mr over an entry of the domain's region table. No memory is pinned or read at
// registration, so a region may be the whole address space. Its descriptor is what
// transports know it by (Gather::handles); an application need not give any.
#pragma once

#include <rdma/fi_domain.h>

#include "api/domain.h"

namespace cluster::api {

class Cntr;

class Mr : public fid_mr {
 public:
  using Handle = fid_mr;

  static int open(Domain& domain, const fi_mr_attr& attributes, std::uint64_t flags, fid_mr** handle);
  ~Mr();

  int bind(fid_t object, std::uint64_t flags);
  /// No peer accesses it any more. False if one goes on accessing it; then it may be repeated.
  bool withdraw();
  /// In a forked child: it is the parent's.
  bool inherited() const { return domain_->inherited(); }
  /// The remote address of the first byte.
  std::uint64_t start() const { return start_; }

 private:
  Mr(Domain& domain, void* context) noexcept;
  void bind_counter(Ref<Cntr>& slot, Cntr& cntr);

  Ref<Domain> domain_;
  Ref<Cntr> reads_;
  Ref<Cntr> writes_;
  std::uint64_t start_ = 0;
  bool listed_ = false;  ///< in the region table: peers may access it
};

}  // namespace cluster::api

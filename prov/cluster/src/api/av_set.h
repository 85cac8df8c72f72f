// An address vector set: a list of handles from an address vector. Each handle names one member of a
// collective team. All members of the team must list the members in the same order. Operations on a set send
// nothing.
#pragma once

#include <rdma/fi_collective.h>

#include <vector>

#include "api/av.h"

namespace cluster::api {

class AvSet : public fid_av_set, public RefCounted {
 public:
  using Handle = fid_av_set;

  static int open(Av& av, fi_av_set_attr* attributes, fid_av_set** handle, void* context);

  int unite(const fid_av_set* other);
  int intersect(const fid_av_set* other) { return keep(other, true); }
  int subtract(const fid_av_set* other) { return keep(other, false); }
  int insert(fi_addr_t address);
  int remove(fi_addr_t address);
  int address(fi_addr_t* team);

  const std::vector<fi_addr_t>& members() const { return members_; }
  /// Returns fi_av_set_attr::comm_key, or 0 if the application has set none. The key distinguishes teams with
  /// the same members.
  std::uint64_t key() const { return key_; }
  Av& av() { return *av_; }

 private:
  AvSet(Av& av, void* context);
  bool contains(fi_addr_t address) const;
  /// If `common` is true, keeps the members that are also in `other`. If `common` is false, keeps the members
  /// that are not in `other`.
  int keep(const fid_av_set* other, bool common);

  std::vector<fi_addr_t> members_;
  std::uint64_t key_ = 0;
  Ref<Av> av_;
};

}  // namespace cluster::api

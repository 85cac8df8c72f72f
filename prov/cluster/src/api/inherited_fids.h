// What becomes of open objects in a child of fork(): their operations fail with -FI_EOPBADSTATE, and closing them
// does nothing. The child has copies of their memory, but rings and registered memory are shared with the parent,
// sessions are the parent's, and its threads are not there. Exchanging the ops tables costs data operations
// nothing.
#pragma once

#include <rdma/fabric.h>

namespace cluster::api {

/// A member of each object whose operations shall fail in a child.
class InheritedFid {
 public:
  explicit InheritedFid(fid& object);
  ~InheritedFid();
  InheritedFid(const InheritedFid&) = delete;
  InheritedFid& operator=(const InheritedFid&) = delete;

 private:
  fid& object_;
};

/// Around fork(): no object is opened or closed between the first and one of the others.
void lock_fids_to_inherit();
void unlock_fids_to_inherit();
/// In the child.
void disable_inherited_fids();

}  // namespace cluster::api

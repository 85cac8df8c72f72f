// A collective team of some sides, and its operations with checked results, for the tests of collectives. Only
// the public interface is used.
#pragma once

#include <rdma/fi_collective.h>

#include "fabric.h"

namespace conformance {

/// Of an endpoint that joins teams.
Options with_collectives();

/// A team of some of a team's sides, in the order given.
class Members {
 public:
  Members(Team& team, std::vector<fi_addr_t> addresses);
  ~Members();
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;
  /// The outcome of the join: 0, or an error number.
  int joined();

  fid_ep* ep() const { return team_.endpoint.ep(); }
  fi_addr_t coll_addr() const { return fi_mc_addr(mc_.get()); }
  fi_addr_t address(std::size_t member) const { return addresses_[member]; }
  std::size_t size() const { return addresses_.size(); }
  std::size_t self() const;
  /// The operation completes with success, and says that it was a collective one.
  void run(const std::function<ssize_t(void* context)>& post);

 private:
  Team& team_;
  std::vector<fi_addr_t> addresses_;
  Owned<fid_av_set> set_;
  std::unique_ptr<fid_mc> mc_;
};

using Numbers = std::vector<std::int64_t>;

/// What a member contributes: `count` numbers that no other member has.
Numbers numbers(std::size_t member, std::size_t count);
/// The sum of the contributions of so many members.
Numbers sum_of(std::size_t members, std::size_t count);

// Each runs one operation of a team and checks its result at this side.
void barrier(Members& members);
void broadcast(Members& members, std::size_t root, std::size_t count);
/// Each operation once, at one length, and those that have a root from each.
void every_operation(Members& members, std::size_t count);

}  // namespace conformance

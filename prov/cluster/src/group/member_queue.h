// Members in the order in which something happened to them, each once. There is space for all that were met, so that to note one never
// needs memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "group/member.h"

namespace cluster::group {

class MemberQueue {
 public:
  void reserve(std::size_t members) { members_.reserve(members); }
  void add(Member& member) {
    if (std::find(members_.begin(), members_.end(), &member) == members_.end()) members_.push_back(&member);
  }
  /// The member is about to end.
  void forget(const Member& member) { std::erase(members_, &member); }
  bool empty() const { return members_.empty(); }
  void clear() { members_.clear(); }
  /// Those for which `done` is true are taken out.
  template <typename Done>
  void erase_if(Done&& done) {
    std::erase_if(members_, [&](Member* member) { return done(*member); });
  }
  template <typename Visit>
  void each(Visit&& visit) {
    for (Member* const member : members_) visit(*member);
  }

 private:
  std::vector<Member*> members_;
};

}  // namespace cluster::group

// The members of a team, grouped by node, and the trees that connect them. A tree connects the nodes through
// one member of each node, the node's leader. On the root's node, the root takes the place of the leader.
// Inside each node, the tree connects the leader with the other members. Therefore each byte crosses the
// network only once for each node.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collective/schedule.h"

namespace cluster::collective {

inline constexpr Member kNoMember = ~Member{0};

/// A list of members. At all members in the list, the list has the same order.
using MemberList = std::vector<Member>;

/// The parent and the children of one member in a tree.
struct Tree {
  Member parent = kNoMember;  ///< kNoMember at the root
  std::vector<Member> children;
};

/// Returns the place of this member in a binomial tree: each round doubles the number of members that have
/// the data. In these three functions, `self` and `root` are the positions of this member and of the root in
/// `list`.
Tree binomial_tree(std::span<const Member> list, std::size_t self, std::size_t root);
/// Returns the place of this member in a chain, in which the data goes from the root to the next member in
/// the list, and so on.
Tree chain_tree(std::span<const Member> list, std::size_t self, std::size_t root);
/// Returns the place of this member in a star, in which the data goes from the root to every other member.
Tree star_tree(std::span<const Member> list, std::size_t self, std::size_t root);

class TeamLayout {
 public:
  using MakeTree = Tree (*)(std::span<const Member> list, std::size_t self, std::size_t root);

  /// `node_of`: one number for each member, equal for members of the same node. `self`: this member.
  TeamLayout(std::span<const std::size_t> node_of, Member self);

  std::size_t size() const { return place_.size(); }
  Member self() const { return self_; }
  /// Returns all members, grouped by node.
  const MemberList& by_node() const { return by_node_; }
  /// Returns the first member of each node.
  const MemberList& leaders() const { return leaders_; }
  /// Returns the first member of this node.
  Member leader() const { return leaders_[node()]; }
  bool leads() const { return leader() == self_; }
  /// Returns the members of this node. position_in_node() is the position of this member in this list.
  const MemberList& neighbors() const { return nodes_[place_[self_].node]; }
  std::size_t node() const { return place_[self_].node; }
  std::size_t node_of(Member member) const { return place_[member].node; }
  std::size_t position_in_node() const { return place_[self_].position; }
  /// Returns the position of this member in by_node().
  std::size_t position_by_node() const;

  /// Returns the place of this member in a binomial tree of the members of this node. The tree starts at
  /// `root` if that member is on this node, and otherwise at the node's leader.
  Tree tree_here(Member root) const;
  /// Returns the place of this member in a tree of all members. `between` builds the tree between the nodes.
  /// Inside each node the tree is binomial.
  Tree tree(Member root, MakeTree between) const;

 private:
  struct Place {
    std::size_t node;
    std::size_t position;
  };

  Member self_;
  std::vector<Place> place_;
  std::vector<MemberList> nodes_;
  MemberList leaders_;
  MemberList by_node_;
};

}  // namespace cluster::collective

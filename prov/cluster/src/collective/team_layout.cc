#include "collective/team_layout.h"

#include <algorithm>
#include <unordered_map>

namespace cluster::collective {

Tree binomial_tree(std::span<const Member> list, std::size_t self, std::size_t root) {
  const std::size_t count = list.size();
  const std::size_t rank = (self + count - root) % count;
  const auto at = [&](std::size_t other) { return list[(other + root) % count]; };
  Tree tree;
  std::size_t bit = 1;
  while (bit < count && (rank & bit) == 0) bit <<= 1;
  if (rank != 0) tree.parent = at(rank - bit);
  for (bit >>= 1; bit != 0; bit >>= 1) {
    if (rank + bit < count) tree.children.push_back(at(rank + bit));
  }
  return tree;
}

Tree chain_tree(std::span<const Member> list, std::size_t self, std::size_t root) {
  const std::size_t count = list.size();
  const std::size_t rank = (self + count - root) % count;
  Tree tree;
  if (rank != 0) tree.parent = list[(self + count - 1) % count];
  if (rank + 1 < count) tree.children.push_back(list[(self + 1) % count]);
  return tree;
}

Tree star_tree(std::span<const Member> list, std::size_t self, std::size_t root) {
  if (self != root) return {.parent = list[root], .children = {}};
  Tree tree;
  for (std::size_t i = 1; i < list.size(); ++i) tree.children.push_back(list[(root + i) % list.size()]);
  return tree;
}

TeamLayout::TeamLayout(std::span<const std::size_t> node_of, Member self)
    : self_(self), place_(node_of.size()) {
  std::unordered_map<std::size_t, std::size_t> numbers;
  for (Member member = 0; member < node_of.size(); ++member) {
    const auto [found, fresh] = numbers.try_emplace(node_of[member], nodes_.size());
    if (fresh) {
      nodes_.emplace_back();
      leaders_.push_back(member);
    }
    MemberList& node = nodes_[found->second];
    place_[member] = {found->second, node.size()};
    node.push_back(member);
  }
  for (const MemberList& node : nodes_) by_node_.insert(by_node_.end(), node.begin(), node.end());
}

std::size_t TeamLayout::position_by_node() const {
  return static_cast<std::size_t>(std::find(by_node_.begin(), by_node_.end(), self_) - by_node_.begin());
}

Tree TeamLayout::tree_here(Member root) const {
  return binomial_tree(neighbors(), position_in_node(), node_of(root) == node() ? place_[root].position : 0);
}

Tree TeamLayout::tree(Member root, MakeTree between) const {
  // On its node, the root takes the place of the leader.
  MemberList leaders = leaders_;
  leaders[place_[root].node] = root;
  const Member leader = leaders[node()];
  const Tree inside = binomial_tree(neighbors(), position_in_node(), place_[leader].position);
  if (leader != self_) return inside;
  Tree tree = between(leaders, node(), place_[root].node);
  tree.children.insert(tree.children.end(), inside.children.begin(), inside.children.end());
  return tree;
}

}  // namespace cluster::collective

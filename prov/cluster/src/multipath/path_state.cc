#include "multipath/path_state.h"

#include <algorithm>

namespace cluster::multipath {

std::size_t PathList::add(const link::Path& to, PathValidator::State state) {
  paths_.push_back(std::make_unique<PathState>(link::ip_path(to), window_max_, PathValidator::kIp, state));
  ++ip_paths_;
  return paths_.size() - 1;
}

void PathList::add_ethertype(std::size_t ip) {
  link::Path to = paths_[ip]->address;
  to.ethertype = true;
  paths_.push_back(std::make_unique<PathState>(to, window_max_, PathValidator::kEthertype,
                                               PathValidator::State::unvalidated));
  paths_.back()->companion = ip;
  paths_[ip]->companion = paths_.size() - 1;
}

std::optional<std::size_t> PathList::find(const link::Path& from) const {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const PathState& path = *paths_[i];
    if (!path.is_ethertype() && path.address.link == from.link && path.address.to == from.to) return i;
  }
  return std::nullopt;
}

void PathList::set_address(std::size_t ip, const link::Path& to) {
  PathState& path = *paths_[ip];
  path.address = link::ip_path(to);
  if (path.companion == PathState::kNone) return;
  link::Path& ethertype = paths_[path.companion]->address;
  ethertype = path.address;
  ethertype.ethertype = true;
}

std::size_t PathList::ethertype_or_ip(std::size_t ip) const {
  const std::size_t companion = paths_[ip]->companion;
  return companion != PathState::kNone && paths_[companion]->validator.validated() ? companion : ip;
}

Time PathList::last_sent_at(std::size_t ip) const {
  const PathState& path = *paths_[ip];
  const Time by_ip = path.recovery.sent_at();
  return path.companion == PathState::kNone ? by_ip
                                            : std::max(by_ip, paths_[path.companion]->recovery.sent_at());
}

void PathList::report(const PathState& path, PathValidator::Event event) const {
  if (event == PathValidator::Event::none || path.is_ethertype()) return;
  // Both are named, because the same rail may reach another address of the peer, and another rail this one.
  const bool known = path.address.link < rails_.size();
  const Rail rail = known ? rails_[path.address.link] : Rail{};
  const std::string from = rail.address.ip_text() + " (" + rail.label + ")";
  const std::string to = path.address.to.text();
  if (event == PathValidator::Event::works) {
    log_.info("rails: from %s to %s works", from.c_str(), to.c_str());
  } else if (path.validator.proven()) {
    log_.warn(
        "rails: from %s to %s nothing answers; frames take the other pairs until it answers again (is a "
        "cable cut?)",
        from.c_str(), to.c_str());
  } else {
    log_.warn(
        "rails: %s does not reach %s; the pair is not used: the two are on different networks, or a firewall "
        "or a smaller MTU is between them (FI_CLUSTER_RAILS names the interfaces to use)",
        from.c_str(), to.c_str());
  }
}

std::size_t PathList::footprint() const {
  std::size_t bytes = paths_.capacity() * sizeof paths_.front();
  for (const auto& path : paths_) bytes += sizeof *path + path->recovery.losses().footprint();
  return bytes;
}

}  // namespace cluster::multipath

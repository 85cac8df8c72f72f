#include "multipath/link_bundle.h"

#include <algorithm>
#include <utility>

namespace cluster::multipath {

LinkBundle::LinkBundle(std::vector<std::unique_ptr<link::Link>> links) {
  for (std::unique_ptr<link::Link>& link : links) members_.push_back({std::move(link)});
}

std::size_t LinkBundle::frame_max() const {
  std::size_t least = members_.front().link->frame_max();
  for (const Member& member : members_) {
    if (member.link->limits_all_paths()) least = std::min(least, member.link->frame_max());
  }
  return least;
}

bool LinkBundle::has_ethertype_path() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.link->has_ethertype_path(); });
}

std::size_t LinkBundle::send_burst(std::span<const link::OutFrame> frames) {
  std::size_t sent = 0;
  while (sent < frames.size()) {
    const std::size_t number = frames[sent].path->link;
    std::size_t end = sent + 1;
    while (end < frames.size() && frames[end].path->link == number) ++end;
    const auto run = frames.subspan(sent, end - sent);
    const std::size_t taken = members_[number].link->send_burst(run);
    sent += taken;
    if (taken < run.size()) break;
  }
  return sent;
}

std::size_t LinkBundle::receive_burst(std::span<link::InFrame> frames) {
  first_ = first_ + 1 == members_.size() ? 0 : first_ + 1;
  const bool idle = std::all_of(members_.begin(), members_.end(),
                                [](const Member& member) { return member.empty_polls > kEmptyPollsMax; });
  std::size_t count = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const std::size_t number = (first_ + i) % members_.size();
    Member& member = members_[number];
    if (++member.empty_polls > kEmptyPollsMax && member.empty_polls % kIdlePollInterval != 0 && !idle)
      continue;
    const std::size_t got = member.link->receive_burst(frames.subspan(count));
    for (link::InFrame& frame : frames.subspan(count, got))
      frame.from.link = static_cast<std::uint8_t>(number);
    if (got != 0) member.empty_polls = 0;
    count += got;
  }
  return count;
}

std::size_t LinkBundle::read_path_errors(std::span<link::PathError> errors) {
  std::size_t count = 0;
  for (std::size_t number = 0; number < members_.size(); ++number) {
    const std::size_t some = members_[number].link->read_path_errors(errors.subspan(count));
    for (link::PathError& error : errors.subspan(count, some)) {
      error.link = static_cast<std::uint8_t>(number);
    }
    count += some;
  }
  return count;
}

std::vector<int> LinkBundle::descriptors() const {
  std::vector<int> all;
  for (const Member& member : members_) {
    const std::vector<int> some = member.link->descriptors();
    if (some.empty()) return {};
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

bool LinkBundle::has_carrier() const {
  return std::ranges::any_of(members_, [](const Member& member) { return member.link->has_carrier(); });
}

void LinkBundle::before_sleep() {
  for (Member& member : members_) {
    member.empty_polls = 0;
    member.link->before_sleep();
  }
}

void LinkBundle::thin(const link::Thinning& thinning) {
  for (Member& member : members_) member.link->thin(thinning);
}

void LinkBundle::on_move(const MoveHandler& handler) {
  for (std::size_t number = 0; number < members_.size(); ++number) {
    members_[number].link->on_move([handler, number](std::uint8_t, const SocketAddress& now) {
      handler(static_cast<std::uint8_t>(number), now);
    });
  }
}

}  // namespace cluster::multipath

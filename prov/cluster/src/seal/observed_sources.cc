#include "seal/observed_sources.h"

#include <algorithm>

namespace cluster::seal {

ObservedSource* ObservedSources::find(const SocketAddress& address, std::uint8_t link) {
  const auto found = std::ranges::find_if(
      sources_, [&](const ObservedSource& each) { return each.address == address && each.link == link; });
  return found == sources_.end() ? nullptr : &*found;
}

const ObservedSource* ObservedSources::at(const SocketAddress& address) const {
  const auto found = std::ranges::find_if(
      sources_, [&](const ObservedSource& each) { return each.proven && each.address == address; });
  return found == sources_.end() ? nullptr : &*found;
}

ObservedSource& ObservedSources::note(const SocketAddress& address, std::uint8_t link) {
  if (ObservedSource* const known = find(address, link)) return *known;
  if (sources_.size() == kMax) {
    auto least = std::ranges::find(sources_, false, &ObservedSource::proven);
    if (least == sources_.end()) least = std::ranges::find(sources_, false, &ObservedSource::used);
    sources_.erase(least == sources_.end() ? sources_.begin() : least);
    review();
  }
  ObservedSource& noted = sources_.emplace_back();
  noted.address = address;
  noted.link = link;
  return noted;
}

ObservedSource* ObservedSources::asked(const SocketAddress& address, std::uint64_t question) {
  if (question == 0) return nullptr;
  const auto found = std::ranges::find_if(sources_, [&](const ObservedSource& each) {
    return each.address == address && each.question == question;
  });
  return found == sources_.end() ? nullptr : &*found;
}

const ObservedSource* ObservedSources::way_to(std::size_t listed, std::uint8_t link) const {
  const auto found = std::ranges::find_if(sources_, [&](const ObservedSource& each) {
    return each.used && each.listed == listed && each.link == link;
  });
  return found == sources_.end() ? nullptr : &*found;
}

void ObservedSources::use(ObservedSource& source) {
  if (source.used) return;
  use_listed(source.listed, source.link);
  source.used = any_used_ = true;
}

void ObservedSources::use_listed(std::size_t listed, std::uint8_t link) {
  for (ObservedSource& each : sources_) {
    if (each.listed == listed && each.link == link) each.used = false;
  }
  review();
}

void ObservedSources::remove(const SocketAddress& address) {
  std::erase_if(sources_, [&](const ObservedSource& each) { return each.address == address; });
  review();
}

void ObservedSources::review() { any_used_ = std::ranges::any_of(sources_, &ObservedSource::used); }

}  // namespace cluster::seal

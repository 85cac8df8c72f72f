// A pool for requests of several types. The ids of all types are different, so an id that a peer returns
// names one request, whatever its type. Every cell is as large as the largest type. All types derive from
// Base, which carries the id. Only Base may own resources, because the pool destroys each request as a Base.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

#include "base/pool.h"

namespace cluster::protocol {

template <typename Base, typename... Types>
class RequestPool {
 public:
  /// Returns a default-constructed request with its id set, or null if the ids are used up.
  template <typename Type>
  Type* acquire() {
    static_assert((std::is_same_v<Type, Types> || ...));
    Cell* const cell = cells_.acquire();
    if (cell == nullptr) [[unlikely]]
      return nullptr;
    Type* const request =
        ::new (static_cast<void*>(cell->bytes)) Type;  // not Type(), which would clear the memory first
    request->id = cell->id;
    cell->request = request;
    return request;
  }

  void release(Base& request) {
    Cell* const cell = cells_.find(request.id);
    std::destroy_at(cell->request);
    cell->request = nullptr;
    cells_.release(*cell);
  }

  /// Keeps a request unchanged, so that take_kept() can return it. If the pool already keeps kKeptMax
  /// requests, releases the request instead. The caller must be sure that no peer knows the request's id,
  /// because find() also finds kept requests.
  void keep(Base& request) {
    if (kept_count_ < kept_.size()) [[likely]] {
      kept_[kept_count_++] = &request;
    } else {
      release(request);
    }
  }
  Base* take_kept() { return kept_count_ == 0 ? nullptr : kept_[--kept_count_]; }
  void release_kept() {
    while (Base* const request = take_kept()) release(*request);
  }

  /// Returns the request with this id, or null if the request was released.
  Base* find(std::uint32_t id) {
    Cell* const cell = cells_.find(id);
    return cell != nullptr ? cell->request : nullptr;
  }

  /// Returns the number of requests in use. Kept requests do not count.
  std::size_t alive() const { return cells_.alive() - kept_count_; }
  /// Allocates memory for `count` more requests, so that acquire() cannot run out of memory for them.
  void reserve(std::size_t count) { cells_.reserve(count); }
  bool can_acquire(std::size_t count) const { return cells_.has_free(count); }

 private:
  struct Cell {
    Cell() {}
    Cell(const Cell&) = delete;
    ~Cell() {
      if (request != nullptr) std::destroy_at(request);
    }

    std::uint32_t id = 0;
    Base* request = nullptr;  ///< lies in `bytes`; null while the cell is free
    alignas(std::max({alignof(Types)...})) std::byte bytes[std::max({sizeof(Types)...})];
  };

  static constexpr std::size_t kKeptMax = 128;

  std::array<Base*, kKeptMax> kept_;  ///< the first kept_count_ are used
  std::size_t kept_count_ = 0;
  Pool<Cell> cells_{std::numeric_limits<std::size_t>::max()};
};

}  // namespace cluster::protocol

// Matrix product over PVM: `pvm_matrix ORDER TASKS [NANOSECONDS]`; prints the seconds, after every element
// has been compared.
//
// The master sends all of B and a block of rows of A to each task, which sends back its rows of the product.
// The elements are small integers, so the sums are exact and the order of the additions does not matter.
//
// With NANOSECONDS, the tasks compute a first product, which is not timed. For the second one they sleep so
// long for each element, and send the first one again. So a machine with fewer processors than tasks shows
// how the product would scale on hosts of its own.
#include <pvm3.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

namespace {

constexpr int tag_work = 1, tag_result = 2, tag_setting = 3;
using Matrix = std::vector<double>;

Matrix product(const Matrix& a, const Matrix& b, int rows, int order) {
  const auto width = static_cast<size_t>(order);
  Matrix c(static_cast<size_t>(rows) * width);
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row)
    for (size_t inner = 0; inner < width; ++inner)
      for (size_t column = 0; column < width; ++column)
        c[row * width + column] += a[row * width + inner] * b[inner * width + column];
  return c;
}

/// Receives the matrices, and sends the rows of `c`, which it computes, or for which it sleeps.
void one_product(int parent, bool sleeps, int nanoseconds, Matrix& c) {
  int rows = 0, order = 0;
  pvm_recv(parent, tag_work);
  pvm_upkint(&rows, 1, 1);
  pvm_upkint(&order, 1, 1);
  Matrix a(static_cast<size_t>(rows * order)), b(static_cast<size_t>(order * order));
  pvm_upkdouble(a.data(), rows * order, 1);
  pvm_upkdouble(b.data(), order * order, 1);
  if (sleeps)
    std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds) * rows * order);
  else
    c = product(a, b, rows, order);
  int host = pvm_tidtohost(pvm_mytid());
  pvm_initsend(PvmDataRaw);
  pvm_pkint(&host, 1, 1);
  pvm_pkdouble(c.data(), rows * order, 1);
  pvm_send(parent, tag_result);
}

int work(int parent) {
  int nanoseconds = 0;
  pvm_recv(parent, tag_setting);
  pvm_upkint(&nanoseconds, 1, 1);
  Matrix c;
  one_product(parent, false, nanoseconds, c);
  if (nanoseconds > 0) one_product(parent, true, nanoseconds, c);
  pvm_exit();
  return 0;
}

int first_row(int task, int tasks, int order) { return order * task / tasks; }

class Product {
 public:
  Product(int order, const std::vector<int>& tasks) : order_(order), tasks_(tasks) {
    for (size_t at = 0; at < a_.size(); ++at) {
      a_[at] = static_cast<double>(at * 7 % 101);
      b_[at] = static_cast<double>(at * 13 % 103);
    }
  }
  /// Lets the tasks make the product; returns the seconds.
  double make() {
    std::fill(c_.begin(), c_.end(), 0.0);
    const auto begun = std::chrono::steady_clock::now();
    for (int task = 0; task < many(); ++task) {
      const int first = first_row(task, many(), order_);
      int rows = first_row(task + 1, many(), order_) - first;
      pvm_initsend(PvmDataRaw);
      pvm_pkint(&rows, 1, 1);
      pvm_pkint(&order_, 1, 1);
      pvm_pkdouble(&a_[start_of(first)], rows * order_, 1);
      pvm_pkdouble(b_.data(), order_ * order_, 1);
      pvm_send(tasks_[static_cast<size_t>(task)], tag_work);
    }
    for (int task = 0; task < many(); ++task) {
      const int first = first_row(task, many(), order_);
      int host = 0;
      pvm_recv(tasks_[static_cast<size_t>(task)], tag_result);
      pvm_upkint(&host, 1, 1);
      pvm_upkdouble(&c_[start_of(first)], (first_row(task + 1, many(), order_) - first) * order_, 1);
      hosts_.insert(host);
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun;
    return passed.count();
  }
  bool right() const { return c_ == product(a_, b_, order_, order_); }
  size_t hosts() const { return hosts_.size(); }

 private:
  size_t start_of(int row) const { return static_cast<size_t>(row) * static_cast<size_t>(order_); }
  int many() const { return static_cast<int>(tasks_.size()); }

  int order_;
  std::vector<int> tasks_;
  Matrix a_ = Matrix(static_cast<size_t>(order_ * order_)), b_ = a_, c_ = a_;
  std::set<int> hosts_;
};

}  // namespace

int main(int count, char** words) {
  pvm_setopt(PvmRoute, PvmRouteDirect);
  if (const int parent = pvm_parent(); parent > 0) return work(parent);
  if (count != 3 && count != 4)
    return std::fprintf(stderr, "usage: pvm_matrix ORDER TASKS [NANOSECONDS]\n"), 2;
  const int tasks = std::atoi(words[2]);
  int nanoseconds = count == 4 ? std::atoi(words[3]) : 0;
  std::vector<int> ids(static_cast<size_t>(tasks));
  char program[] = "pvm_matrix";
  if (pvm_spawn(program, nullptr, PvmTaskDefault, nullptr, tasks, ids.data()) != tasks)
    return std::fprintf(stderr, "fewer than %d tasks\n", tasks), 1;
  pvm_initsend(PvmDataRaw);
  pvm_pkint(&nanoseconds, 1, 1);
  pvm_mcast(ids.data(), tasks, tag_setting);
  Product whole(std::atoi(words[1]), ids);
  double seconds = whole.make();
  bool right = whole.right();
  if (nanoseconds > 0) {
    seconds = whole.make();
    right = right && whole.right();
  }
  std::printf("%.3f s on %zu hosts: %s\n", seconds, whole.hosts(), right ? "right" : "wrong");
  pvm_exit();
  return right ? 0 : 1;
}

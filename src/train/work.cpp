#include "train/work.hpp"

#include "base/error.hpp"

namespace mpi4dl {

Work share_work(const Layout& layout, const BatchShape& shape, ScheduleKind kind, int rank) {
  ensure(shape.replicas == layout.replicas(), "a batch for {} replicas cannot be shared by {}",
         shape.replicas, layout.replicas());
  const Role role = layout.roles(rank)[0];
  const PipelineShape pipeline{static_cast<int>(layout.stages().size()), shape.parts, shape.times};
  return {micro_batches(shape, role.replica), make_schedule(kind, pipeline, role.stage),
          shape.effective()};
}

Work work_alone(const BatchShape& shape, BatchNormScope batch_norm) {
  Work work{batch_norm == BatchNormScope::replicas ? joined_micro_batches(shape)
                                                   : all_micro_batches(shape),
            {},
            shape.effective()};
  work.schedule = one_f_one_b({.micro_batches = static_cast<int>(work.batches.size())}, 0);
  return work;
}

}  // namespace mpi4dl

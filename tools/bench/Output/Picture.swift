import Foundation

/// The ratios of Dendro to its peers as a picture in SVG: a bar for each, on a logarithmic scale.
enum Picture {
  private static let labelWidth = 330.0
  private static let plotWidth = 420.0
  private static let rowHeight = 20.0

  /// - Parameter goals: those that are no ratio to a peer are left out.
  static func svg(_ goals: [GoalOutcome], machine: Machine) -> String {
    let ratios = goals.filter { $0.peer != nil && $0.reached.median > 0 }
    let height = 60 + rowHeight * Double(ratios.count)
    // From a tenth to a hundred times.
    func x(_ ratio: Double) -> Double {
      labelWidth + plotWidth * (min(2, max(-1, log10(ratio))) + 1) / 3
    }
    var parts = [
      """
      <svg xmlns="http://www.w3.org/2000/svg" width="820" height="\(height)" \
      viewBox="0 0 820 \(height)" font-family="sans-serif" font-size="12">
      <rect width="820" height="\(height)" fill="white"/>
      """
    ]
    for (ratio, label) in [(0.1, "0.1"), (1, "1 times"), (10, "10"), (100, "100")] {
      parts.append(
        """
        <line x1="\(x(ratio))" x2="\(x(ratio))" y1="24" y2="\(height - 30)" \
        stroke="\(ratio == 1 ? "#333" : "#ccc")"/>
        <text x="\(x(ratio))" y="18" text-anchor="middle">\(label)</text>
        """)
    }
    for (row, goal) in ratios.enumerated() {
      let y = 28 + rowHeight * Double(row)
      let ratio = goal.reached.median
      let left = min(x(1), x(ratio))
      let label = "\(goal.row) \(goal.title), \(goal.peer ?? "")"
      parts.append(
        """
        <text x="\(labelWidth - 8)" y="\(y + 13)" text-anchor="end" font-size="10">\
        \(escaped(label))</text>
        <rect x="\(left)" y="\(y + 3)" width="\(abs(x(ratio) - x(1)))" height="13" \
        fill="\(ratio >= 1 ? "#2a7f62" : "#b5523b")"/>
        <text x="\(max(x(1), x(ratio)) + 5)" y="\(y + 13)">\(goal.reached.text)</text>
        """)
    }
    parts.append(
      """
      <text x="8" y="\(height - 10)" font-size="10" fill="#555">\
      \(escaped("Dendro to its peers: ratios in one run. \(machine.processor), \(machine.coreCount) cores, \(machine.date)"))\
      </text>
      </svg>
      """)
    return parts.joined(separator: "\n") + "\n"
  }

  private static func escaped(_ text: String) -> String {
    text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
  }
}

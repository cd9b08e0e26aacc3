// Package gantt draws who does what when: one row a rank, a bar for each pass,
// and what is left between them is the bubble.
//
// A Figure holds one or more charts on one time axis, so that the same job
// before and after can be compared by eye. The bars may come from a schedule
// (FromTimeline) or from a measurement; all that counts is that their times are
// in one unit and begin at 0.
//
// Figure.SVG draws it for browsers and documents, light or dark as the reader
// has it, with every bar explained under the pointer. Figure.Text draws it for a
// terminal. The hue tells the phase, the shade the chunk.
//
// Both stay small however many bars there are: what is too narrow to be seen is
// drawn together with its neighbours, and the picture says so. Text in it is
// escaped, whatever it is.
//
// Times are floats here because pixels are: a figure is for looking at. What it
// says of a schedule's makespan and bubble comes with it (Chart.Makespan,
// Chart.Bubble), exact, from where it was computed.
package gantt
